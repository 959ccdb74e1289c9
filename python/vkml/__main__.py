"""`python -m vkml`: the devices, what they can do, why one is unusable, and a self-test. `--json` for programs.

`python -m vkml tune` measures matmul's pipelines on a device and stores the winners."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np

import vkml


def self_test(device: str) -> str:
    """ "ok", or what went wrong: values up, through kernels, and down again."""
    try:
        values = np.arange(12, dtype=np.float32).reshape(3, 4)
        x = vkml.tensor(values, device=device)
        if not np.array_equal(x.T.contiguous().numpy(), values.T):
            return "failed: a transposed copy differs"
        if not np.array_equal(vkml.full((5,), 7, device=device).numpy(), np.full(5, 7)):
            return "failed: a filled tensor differs"
        if hasattr(vkml, "matmul"):
            product = vkml.matmul(x, x.T).numpy()
            if not np.allclose(product, values @ values.T, rtol=1e-5):
                return "failed: a matrix product differs"
        return "ok"
    except Exception as error:  # the report is the point
        return f"failed: {type(error).__name__}: {error}"


def report() -> dict[str, Any]:
    entries = []
    for record in vkml.devices():
        entry: dict[str, Any] = {
            name: getattr(record, name) for name in ("name", "type", "driver", "memory", "usable", "why")
        }
        entry["device"] = str(record.device)
        if record.usable:
            entry["self_test"] = self_test(entry["device"])
            try:
                entry["info"] = vkml.device_info(entry["device"])
            except vkml.Error as error:
                entry["info"] = {"error": str(error)}
        entries.append(entry)
    return {"version": vkml.__version__, "devices": entries, "configuration": vkml.configuration()}


def show(found: dict[str, Any]) -> None:
    print(f"vkml {found['version']}")
    for entry in found["devices"]:
        state = f"self-test {entry['self_test']}" if entry["usable"] else "unusable"
        print(
            f"\n{entry['device']}: {entry['name'] or '-'} ({entry['type']}), {entry['memory'] / 2**30:.1f} GiB, {state}"
        )
        if entry["driver"]:
            print(f"  driver: {entry['driver']}")
        if entry["why"]:
            print(f"  note: {entry['why']}")
        for key, value in entry.get("info", {}).items():
            if key not in ("device", "name", "type", "driver", "memory"):
                print(f"  {key}: {value}")
    print("\nEnvironment:")
    for setting in found["configuration"]:
        print(f"  {setting['name']} = {setting['value'] or '-'}{'' if setting['set'] else ' (not set)'}")


def main() -> int:
    if sys.argv[1:2] == ["tune"]:
        from vkml._tune import main as tune

        return tune(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m vkml", description=__doc__)
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    options = parser.parse_args()
    found = report()
    if options.json:
        print(json.dumps(found, indent=2, default=str))
    else:
        show(found)
    return 0 if all(e.get("self_test", "ok") == "ok" for e in found["devices"]) else 1


if __name__ == "__main__":
    sys.exit(main())
