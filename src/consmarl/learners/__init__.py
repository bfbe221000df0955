"""What one method changes in "episodes in, parameters out"; learners know nothing of sharing."""
