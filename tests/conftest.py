"""What all tests may use: those of the plugin run pytest inside pytest."""

pytest_plugins = ["pytester"]
