"""The pages of the reference, made from the code."""
