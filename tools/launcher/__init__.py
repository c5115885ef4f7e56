"""The launcher behind tools/launch.py, by the way a job takes through it.

    options      the command line, checked
    worker_command
                 the workers' command, with python -m kvstore_ext put into it
    hosts        the hostfile, and which process goes to which host
    processes    one Process for the scheduler, every server and every worker
    environment  what each of them finds in its environment
    ssh, mpi, slurm
                 the command that starts something on another host
    direct       starts a supervisor beside each process: here, or by one ssh each
    gathering    starts them all by one mpirun or srun, whose tasks report to the launcher
    protocol     what the launcher and a supervisor say to each other
    running      one process that has been started
    ranks        which number MXNet will give to which process
    job          start, follow, notice the first failure, end everything
    output       prefix, log files, last lines

On the host of the process:

    agent        finds its number among mpirun's or srun's tasks, then starts a supervisor
    supervisor   runs one process and ends it, with all it started, when the launcher is gone
    process_tree who descends from whom, by /proc
    network      the host's own addresses and free ports

A supervisor lives as long as its input is open. The kernel closes that input however the launcher
ends, by SIGKILL too, so no process outlives the job and no list of process ids has to be kept.
"""
