"""Scenarios of several users on one server: what each of them may see and do of the others'
cursors, sessions, operations and documents.

A scenario yields replies, without the parts that differ from server to server. It restores the
users and documents that it changes.
"""

from authorization.scenarios import operations, ownership, reading, writing

SCENARIOS = [*ownership.SCENARIOS, *operations.SCENARIOS, *reading.SCENARIOS, *writing.SCENARIOS]
