"""What the documents say is so. To read in this order:

documents.py       links, anchors, code and commands of Markdown
test_links.py      links lead somewhere
test_commands.py   commands work; rules.py has what is run for each, train.py is the user's script
read_flags.py      has scripts read their flags alone
test_python.py     Python blocks run, in run_blocks.py
test_quotes.py     quoted messages are in the sources, which sources.py reads; figures have commands
test_papers.py     nothing numbered of the papers is left out
test_kubernetes.py the manifest's processes make a job
test_site.py       the check that make docs ends with
"""
