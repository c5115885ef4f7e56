"""What workers and servers say to each other beside the slices of gradients.

What this room promises: it knows how things are asked, answered and written down, and nothing of
what they mean. Who answers a question, or executes a command, registers it here. In reading order:

    commands.py         what workers command all servers to do
    questions.py        what a worker asks one server, and how it waits for the answer
    question_desk.py    a server's thread that hands each question to who answers it
    scheduler_watch.py  what a worker or server says when the scheduler is gone
    end_signal.py       how a process notices that it was told to end
    digest_board.py     how workers find out that one of them has other parameters
    end_board.py        how workers come to a common step at which the job then ends
    carries.py          what a store's method adds to saved states
    state_format.py     an optimizer's state as an outline and bytes
    state_pieces.py     how a state travels in pieces, however large it is
    handover.py         what one worker leaves on the servers for others to take

It imports errors, notes, version, config, launch_reports and _core, and nothing else of
kvstore_ext.
"""
