"""Starts a distributed job and ends it: no process of a job outlives its launcher.

`kvstore-launch`, `python -m kvstore_ext.launcher` and, in a checkout, `tools/launch.py` take the
same arguments and do the same. To follow a job, read in this order:

    __main__     how the launcher and the far ends of a job start
    main         from the command line to the exit status
    arguments    the command line's options
    option_types what each may be
    refused_options
                 options that it does not take, and what to type instead:
    dmlc_options those of MXNet's own launcher, and what replaces them
    runner_options
                 those of kvstore-ext, which belong into the workers' command
    options      the command line, checked
    mistakes     commands that users type and do not mean
    store_options
                 which options the stores have
    worker_command
                 the workers' command, with the runner, kvstore_run.py, put into it
    hosts        the hostfile, and which process goes to which host
    processes    one Process for the scheduler, every server and every worker
    environment  what each of them finds in its environment
    job_key      the secret of a job whose processes encrypt
    far_ends     the commands that start a supervisor or an agent
    ssh, mpi, slurm
                 the command that starts one of them on another host
    tasks_command
                 mpirun's or srun's, for a whole job
    direct       starts a supervisor beside each process: here, or by one ssh each
    rsync        copies the working directory to other hosts first
    gathering    starts them all by one mpirun or srun, whose tasks report to the launcher
    proof        how such a task and the launcher know each other
    orders       and how it knows the launcher's orders
    dry_run      says what would be started, by all this
    protocol     what the launcher and a supervisor say to each other
    account      what a process has told of itself
    trace_files  brings a trace's files from other hosts
    running      one process that has been started
    ranks        which number MXNet will give to which process
    job          start, follow, notice the first failure, end everything
    standing     when the job stands, whom it waits for, what it has done
    blame        who is to blame when processes fail
    failure      what is said of it
    attempts     starts the job again after a failure
    output       log files, last lines, answers to questions
    terminal     prefixes and colours, or one worker alone
    status       what is going on in a job, in figures
    status_file  the file that has them, on a disk that may not answer
    watching     follows them, and shows a line of them
    top          shows that file as a table: kvstore-launch top
    metrics      serves them to Prometheus
    screen       the launcher's own streams, which need no reader

On the host of the process:

    agent        finds its number among mpirun's or srun's tasks, then starts a supervisor
    supervisor   runs one process and ends it, with all it started, when the launcher is gone
    report_socket
                 where the process tells what the launcher is to know
    process_tree who descends from whom, by /proc
    network      the host's own addresses and free ports

A supervisor lives as long as its input is open. The kernel closes that input however the launcher
ends, by SIGKILL too, so no process outlives the job and no list of process ids has to be kept.

A process of kvstore_ext tells its supervisor by launch_reports.py that it joins, that it has
joined, what it does meanwhile, which files of a trace it writes, how much it has sent, and why it
ends. Other programs tell nothing, and run as well.

These files import the standard library and, with a dot, each other; never mxnet. The package's own
`__init__`, which does, is passed over (by_place.py). So the launcher works where neither can be
imported, and a supervisor starts fast and stays small.
"""
