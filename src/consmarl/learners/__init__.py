"""Learning methods: episodes in, parameters out. Learners know nothing of sharing."""
