"""Profiles, catalog and presets."""
