"""Fits to a trained model: calibration, copy bias, the weights of its opinion."""
