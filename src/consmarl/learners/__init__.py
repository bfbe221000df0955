"""Learning methods: episodes in, parameters out. Learners are independent of sharing."""
