"""Tests of the files a run is written to."""
