#!/usr/bin/env python3
"""Runs `cb2t verify`, `unpack`, `inspect` and `head` over a folder of 10,000 damaged files.

Each run must end within 10 seconds, by exit code 0, 1 or 3, without a panic, and within 1 GiB of memory.

    fuzz/mutated_folder.py [--count N] [--cb2t PROGRAM] [--generator PROGRAM] [--seed N]

Without --cb2t and --generator both are built.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = [
    ["verify", "FILE"],
    ["unpack", "FILE", "-o", "-", "--format", "arrow-stream"],
    ["inspect", "FILE", "--blocks"],
    ["head", "FILE"],
]
SECONDS = 10
MEMORY_BYTES = 1 << 30
EXIT_CODES = {0, 1, 3}


def built(arguments, program):
    subprocess.run(["cargo", "build", "--release", *arguments], cwd=ROOT, check=True)
    return ROOT / program


def run(program, command, file):
    """Exit code, standard error, seconds, and the most memory in bytes of one run."""
    arguments = [str(program)] + [str(file) if word == "FILE" else word for word in command]
    with tempfile.TemporaryFile() as errors:
        started = time.monotonic()
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        # Waited for by wait4, which tells the memory: a clock of its own ends what takes too long.
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            seconds = time.monotonic() - started
            if pid:
                break
            if seconds > SECONDS:
                process.kill()
                _, status, usage = os.wait4(process.pid, 0)
                break
            time.sleep(0.0005)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return process.returncode, errors.read().decode(errors="replace"), seconds, usage.ru_maxrss * 1024


def check(program, file):
    found = []
    for command in COMMANDS:
        code, errors, seconds, memory = run(program, command, file)
        problem = None
        if seconds > SECONDS:
            problem = f"took more than {SECONDS} s"
        elif code not in EXIT_CODES:
            problem = f"exit code {code}"
        elif "panicked" in errors:
            problem = "panicked"
        elif memory > MEMORY_BYTES:
            problem = f"took {memory >> 20} MiB"
        elif code and not errors.strip() and command[0] != "verify":
            problem = "failed without a word"
        found.append((command[0], code, seconds, memory, problem, errors))
    return file, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cb2t", type=pathlib.Path)
    parser.add_argument("--generator", type=pathlib.Path)
    options = parser.parse_args()
    program = options.cb2t or built(["-p", "cli"], "target/release/cb2t")
    generator = options.generator or built(
        ["--manifest-path", "fuzz/Cargo.toml", "--bin", "mutated_folder"], "fuzz/target/release/mutated_folder"
    )
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([generator, folder, str(options.count), str(options.seed)], check=True)
        files = sorted(pathlib.Path(folder).iterdir())
        codes = collections.Counter()
        slowest, largest, problems = 0.0, 0, 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for file, found in pool.map(lambda file: check(program, file), files):
                for name, code, seconds, memory, problem, errors in found:
                    codes[name, code] += 1
                    slowest, largest = max(slowest, seconds), max(largest, memory)
                    if problem:
                        problems += 1
                        kept = ROOT / "fuzz" / "artifacts" / file.name
                        kept.parent.mkdir(exist_ok=True)
                        kept.write_bytes(file.read_bytes())
                        print(f"{name} {kept}: {problem}\n{errors[:500]}", file=sys.stderr)
    print(f"{len(files)} files, {problems} problems; slowest {slowest:.2f} s, most memory {largest >> 20} MiB")
    for (name, code), count in sorted(codes.items()):
        print(f"  {name}: exit code {code}: {count}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
