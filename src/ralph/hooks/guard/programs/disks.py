"""Disks, partitions and filesystems. Inspecting is fine, and so is a regular file that holds a filesystem."""

from ralph.hooks.guard import places as at
from ralph.hooks.guard.invoke import Invocation
from ralph.hooks.guard.marks import UNKNOWN
from ralph.hooks.guard.wordlist import one_of

_LOOKS = one_of(
    """
    list status show info get -l -v --detail --examine -i print property luksdump usage apfs history iostat -f -a -n -j
    """
)
_HARM = one_of(
    """
    destroy delete erase remove format create zero stop rollback erasedisk secureerase erasevolume partitiondisk
    luksformat luksremovekey luksdelkey --zero-superblock --stop --create --remove sanitize reformat unmountdisk
    """
)
_CAN_LOOK = one_of("mount fsck btrfs diskutil nvme zfs zpool mdadm cryptsetup tune2fs")


def make_filesystem(call: Invocation) -> str:
    _on_devices(call, call.options(valued="tLbNUmiIEOTGcqV").rest[-2:])
    return ""


def partition(call: Invocation) -> str:
    """Inspecting is fine."""
    options = call.options(valued="bt")
    looks = {"-l", "--list", "--print", "-p", "--help", "-V", "print", "-d", "--dump", "-n", "--no-act"}
    if looks & (options.flags | set(options.rest)) and not {"rm", "mklabel", "mkpart", "--delete", "-Z"} & set(
        call.args
    ):
        return UNKNOWN
    _on_devices(call, options.rest[:1] if call.name != "wipefs" else options.rest)
    return ""


def _on_devices(call: Invocation, paths: list[str]) -> None:
    """On a regular file of the agent it is harmless."""
    kinds = {call.shell.locate(path).kind for path in paths if not path.isdigit()}
    if not kinds or not kinds <= {at.INSIDE, at.TEMP}:
        call.deny("devices")


def disks(call: Invocation) -> None:
    words = {arg.lower() for arg in call.args}
    if not words and call.name in ("mount", "swapon", "losetup", "zfs", "zpool"):
        return
    if call.name in _CAN_LOOK and words & _LOOKS and not words & _HARM:
        return
    if call.name in ("losetup", "hdparm", "swapon") and words & (_LOOKS | {"--show", "-s"}):
        return
    call.deny("devices")


JUDGES = {
    **dict.fromkeys(one_of("mkfs mke2fs newfs mkdosfs *"), make_filesystem),
    **dict.fromkeys(one_of("fdisk sfdisk sgdisk gdisk parted cfdisk wipefs"), partition),
    **dict.fromkeys(
        one_of(
            """
            cryptsetup lvremove vgremove pvremove lvreduce pvcreate vgcreate lvcreate mdadm zpool zfs btrfs mount umount
            swapoff swapon mkswap losetup tune2fs resize2fs e2fsck fsck xfs_repair debugfs nvme diskutil hdparm
            blkdiscard badblocks dmsetup kpartx ddrescue partprobe multipath pvmove
            """
        ),
        disks,
    ),
}
