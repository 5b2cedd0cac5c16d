"""Other people's diffusion models, run on this machine."""
