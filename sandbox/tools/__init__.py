"""The sandbox's tools: one file each, found by the registry under `sandbox.tools`."""
