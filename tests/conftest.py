import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import hypothesis
import jax

# Broadcasting over a missing axis is nearly always a mistake: it has to be written out.
jax.config.update("jax_numpy_rank_promotion", "raise")

# A world compiles at its first example, which no deadline for an example allows for.
hypothesis.settings.register_profile("consmarl", deadline=None, print_blob=True)
hypothesis.settings.load_profile("consmarl")
