"""Tests of reading a value of any schema."""
