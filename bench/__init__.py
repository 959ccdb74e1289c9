"""Benchmarks over the operator table of the tests: `python -m bench --help`."""
