"""Fits to a trained model: calibration, the weights of its opinion."""
