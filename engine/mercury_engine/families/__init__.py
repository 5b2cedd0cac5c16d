"""Third-party diffusion models, run on this machine."""
