# SPDX-License-Identifier: Apache-2.0
"""R35: no unit sets what jobs would inherit or what makes fsboxd's clients look foreign to it."""

import re

import tree

# systemd.exec(5): each of these makes a mount, user or network namespace, or a filter or limit that
# outlives fork and exec.
FORBIDDEN = set("""
    AppArmorProfile BindPaths BindReadOnlyPaths CapabilityBoundingSetAmbient DynamicUser ExecPaths
    InaccessiblePaths IPCNamespacePath KeyringMode LockPersonality MemoryDenyWriteExecute MountAPIVFS
    MountFlags MountImages NetworkNamespacePath NoExecPaths NoNewPrivileges Personality PrivateDevices
    PrivateIPC PrivateMounts PrivateNetwork PrivateTmp PrivateUsers ProcSubset ProtectClock
    ProtectControlGroups ProtectHome ProtectHostname ProtectKernelLogs ProtectKernelModules
    ProtectKernelTunables ProtectProc ProtectSystem ReadOnlyPaths ReadWritePaths RestrictAddressFamilies
    RestrictFileSystems RestrictNamespaces RestrictRealtime RestrictSUIDSGID RootDirectory RootImage
    SecureBits SystemCallArchitectures SystemCallErrorNumber SystemCallFilter SystemCallLog
    TemporaryFileSystem User Group
""".split())


def run():
    names = [name for name in tree.files() if re.search(r"\.(service|socket)\.in$", name)]
    problems = []
    for name in names:
        for number, line in enumerate(tree.read(name).split("\n"), 1):
            key = line.partition("=")[0].strip()
            if key in FORBIDDEN:
                problems.append(f"{name}:{number}: {key}=")
    return tree.finish(problems, len(names), "units")


tree.main(run)
