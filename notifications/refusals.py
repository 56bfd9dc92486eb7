"""What channels refuse."""

from ledger.errors import LedgerError


class ChannelNameTaken(LedgerError):
    """Two channels of a workspace never have one name."""

    code = "channel_name_taken"
    sentence = "There is a channel of the name {name!r} here. Nothing was changed. Take another."


class UnfitTarget(LedgerError):
    """A channel would send to an address that the outbound rules refuse."""

    code = "unfit_target"
    http = 422
    sentence = "{why} Nothing was changed."
