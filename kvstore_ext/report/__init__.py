"""Where the time of a job's steps goes, from its trace: the command kvstore-ext report.

In reading order:

    hosts           which of them share a name
    moments, spans  events by name; spans of time
    steps           the steps that count
    layers          which keys a layer needs
    iteration       where a worker's step goes: computing and waiting
    causes          what each wait was for
    transfers, links
                    what each link carries, by samples of 10 ms
    overlap, stragglers, order, compression
                    what else is asked of a trace
    analysis        all of it
    words           numbers as a reader sees them
    advice, link_rules, key_rules, process_rules, rules
                    what to do, each sentence with its figure
    html, pictures  pieces of it
    section, time_sections, link_sections, key_sections, process_sections, sections
                    the parts of the page
    page, page.html the page
    main            the command

It imports trace/ alone, and works without MXNet.
"""
