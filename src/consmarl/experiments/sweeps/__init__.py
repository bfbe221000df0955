"""Many runs: what is to be run, the paper's studies, and the workers that do it."""
