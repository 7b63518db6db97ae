"""What all tests may use: those of the plugin run pytest inside pytest."""

from hypothesis import settings

pytest_plugins = ["pytester"]

settings.register_profile("surecall", settings.default, deadline=None)  # no test asserts a time
settings.load_profile("surecall")
