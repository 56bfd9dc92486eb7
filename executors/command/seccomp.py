"""The system calls a command may not make, as a filter for the kernel.

Refused: what reads or steers other processes, mounts, new namespaces, kernel modules, keys, and
giving a file its set-uid or set-gid bit. The filter is classic BPF over `struct seccomp_data`.
Source: security, section 4; the kernel's seccomp(2) and its system call tables.
"""

import errno
import platform
import struct
from collections.abc import Iterator

_LOAD, _JUMP_IF, _JUMP_IF_ANY, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16

_COLUMNS = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000

# name: (x86_64, aarch64); from 424 on both count alike.
_REFUSED: dict[str, tuple[int, int]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442),
}
# Their arguments lie in memory the filter cannot read: programs fall back to the older calls.
_UNKNOWN = {"clone3": 435, "openat2": 437, "io_uring_setup": 425}

_SET_ID_BITS, _CREATE, _NEW_USER, _PUSH_INPUT = 0o6000, 0o100, 0x10000000, 0x5412
# name: (x86_64, aarch64, argument, bits of which any is refused)
_REFUSED_BITS: dict[str, tuple[int | None, int | None, int, int]] = {
    "chmod": (90, None, 1, _SET_ID_BITS),
    "fchmod": (91, 52, 1, _SET_ID_BITS),
    "fchmodat": (268, 53, 2, _SET_ID_BITS),
    "fchmodat2": (452, 452, 2, _SET_ID_BITS),
    "creat": (85, None, 1, _SET_ID_BITS),
    "mknod": (133, None, 1, _SET_ID_BITS),
    "mknodat": (259, 33, 2, _SET_ID_BITS),
    "clone": (56, 220, 0, _NEW_USER),
}
# The mode of an open counts only beside O_CREAT: name, argument of flags, argument of mode.
_OPENS: dict[str, tuple[int | None, int | None, int, int]] = {
    "open": (2, None, 1, 2),
    "openat": (257, 56, 2, 3),
}
_IOCTL = (16, 29)


def supported() -> bool:
    """Say whether this processor's system calls are in the tables."""
    return platform.machine() in _COLUMNS


def program() -> bytes:
    """Compile the filter for this machine. Raises KeyError where `supported()` is false."""
    column, arch = _COLUMNS[platform.machine()]
    return b"".join(_instructions(column, arch))


def _instructions(column: int, arch: int) -> Iterator[bytes]:
    yield _step(_LOAD, _ARCH_AT)
    yield _step(_JUMP_IF, arch, skip_if=1)
    yield _refuse(errno.ENOSYS)
    yield _step(_LOAD, _NUMBER_AT)
    if column == 0:
        yield from _refuse_if(_JUMP_IF_ANY, _X32, errno.ENOSYS)
    for number in _UNKNOWN.values():
        yield from _refuse_if(_JUMP_IF, number, errno.ENOSYS)
    for numbers in _REFUSED.values():
        yield from _refuse_if(_JUMP_IF, numbers[column], errno.EPERM)
    for call in _REFUSED_BITS.values():
        if (number_or_none := call[column]) is not None:
            yield from _unless(number_or_none, _refuse_bits(call[2], call[3]))
    for call in _OPENS.values():
        if (number_or_none := call[column]) is not None:
            yield from _unless(number_or_none, _refuse_creation(call[2], call[3]))
    yield from _unless(_IOCTL[column], _refuse_value(1, _PUSH_INPUT))
    yield _step(_RETURN, _ALLOW)


def _step(code: int, operand: int, *, skip_if: int = 0, skip_else: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_if, skip_else, operand)


def _refuse(error: int) -> bytes:
    return _step(_RETURN, _REFUSE | error)


def _refuse_if(test: int, operand: int, error: int) -> list[bytes]:
    return [_step(test, operand, skip_else=1), _refuse(error)]


def _unless(number: int, steps: list[bytes]) -> list[bytes]:
    """Run `steps` for one system call; they leave another number loaded, so they end the filter."""
    steps = [*steps, _step(_RETURN, _ALLOW)]
    return [_step(_JUMP_IF, number, skip_else=len(steps)), *steps]


def _argument(index: int) -> bytes:
    return _step(_LOAD, _ARGUMENTS_AT + 8 * index)  # the low half, on a little-endian machine


def _refuse_bits(index: int, bits: int) -> list[bytes]:
    return [_argument(index), *_refuse_if(_JUMP_IF_ANY, bits, errno.EPERM)]


def _refuse_value(index: int, value: int) -> list[bytes]:
    return [_argument(index), *_refuse_if(_JUMP_IF, value, errno.EPERM)]


def _refuse_creation(flags: int, mode: int) -> list[bytes]:
    checks = _refuse_bits(mode, _SET_ID_BITS)
    return [_argument(flags), _step(_JUMP_IF_ANY, _CREATE, skip_else=len(checks)), *checks]
