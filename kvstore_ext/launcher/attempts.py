"""Starts a job, and with --restarts again after a failure, until another start would be in vain."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import replace
from typing import Callable

from .environment import TRACE
from .failure import JobError, say_failure
from .hosts import Host
from .job import Job
from .options import Options
from .output import make_log_directory

NAME = "KVSTORE_EXT_ATTEMPT"  # of the variable that counts the starts of a job, from 0
_SHORTEST_BREAK, _LONGEST_BREAK = 1.0, 60.0  # seconds
_LONG = 20.0  # seconds that an attempt lasts after which the break is a short one again


class Attempts:
    """All attempts at one job. Make it inside the event loop.

    `make` makes the job of one attempt, `say` takes each line.
    """

    def __init__(
        self, options: Options, make: Callable[[Options], Job], say: Callable[[str], None]
    ) -> None:
        self._options = options
        self._make = make
        self._say = say
        self._job: Job | None = None
        self._failures: list[JobError] = []
        self._ended_well = False
        self._begun = 0.0  # when the last attempt was
        self._break = 0.0  # before it
        self._stopped: asyncio.Future[JobError] = asyncio.get_running_loop().create_future()

    @property
    def failure(self) -> str:
        """Why the last attempt has failed; empty where it has not."""
        return "" if self._ended_well or not self._failures else str(self._failures[-1])

    async def run(self) -> int:
        """Returns 0 when an attempt has ended well, the status of the last failure otherwise.

        A hangup, or Ctrl-C, that was ignored before stays so: nohup has it, and a shell's `&`.
        """
        loop = asyncio.get_running_loop()
        unless_ignored = (signal.SIGINT, signal.SIGHUP)
        ended_by = [each for each in unless_ignored if signal.getsignal(each) != signal.SIG_IGN]
        for number in (signal.SIGTERM, *ended_by):
            loop.add_signal_handler(number, self._stop, number)
        while True:
            try:
                await self._attempt()
            except JobError as failure:
                if self._is_last(failure):
                    return failure.status
            else:
                self._ended_well = True
                return 0
            self._job = None
            if await self._is_stopped():
                return self._stopped.result().status

    async def _attempt(self) -> None:
        """Raises OSError where the first attempt cannot write its logs, and JobError where a later
        one cannot: a disk may only be full for a while."""
        self._begun = time.monotonic()
        try:
            self._job = self._make(self._next_options())
        except OSError as error:
            if not self._failures:
                raise
            text = f"cannot write the log {error.filename}: {error.strerror}"
            raise JobError(text, 2) from None
        await self._job.run()

    def _stop(self, number: signal.Signals) -> None:
        """A signal to the launcher counts as the job's last failure."""
        failure = JobError(f"{number.name} has ended the job", 128 + number, final=True)
        if not self._stopped.done():
            self._stopped.set_result(failure)
        if self._job is not None and number == signal.SIGTERM:
            self._job.tell(failure)
        elif self._job is not None:
            self._job.fail(failure)

    def _next_options(self) -> Options:
        hosts = self._hosts()[: self._options.hosts_needed]
        options, attempt = replace(self._options, hosts=tuple(hosts)), len(self._failures)
        if not options.restarts:
            return options
        environment = {**options.environment, NAME: str(attempt)}
        if TRACE in environment:  # files below another attempt's would count as that one's
            environment[TRACE] = os.path.join(environment[TRACE], f"attempt-{attempt}")
        logs = os.path.join(options.log_dir, f"attempt-{attempt}") if attempt else options.log_dir
        make_log_directory(logs)
        first = options.log_dir
        return replace(options, environment=environment, log_dir=logs, first_log_dir=first)

    def _hosts(self) -> list[Host]:
        """Returns the hosts that can be used: without those that are gone, where there are spare
        ones. Those that have gone first may be back, where there would be too few without them:
        what keeps the launcher from all hosts for a while is the fault of none."""
        hosts, needed = list(self._options.hosts), self._options.hosts_needed
        if needed is None:
            return hosts
        gone = [failure.host for failure in self._failures if failure.host is not None]
        while len(gone) > 1 and len(set(hosts) - set(gone)) < needed:
            del gone[0]
        return [host for host in hosts if host not in gone]

    def _is_last(self, failure: JobError) -> bool:
        """Tells of an attempt that has failed; returns whether another one would be in vain."""
        self._failures.append(failure)
        say_failure(failure, self._say)
        obstacle = self._obstacle()
        if obstacle is None:
            return False
        if len(self._failures) > 1:
            causes = [f"{number}: {each}" for number, each in enumerate(self._failures)]
            self._say("\n    ".join(["all attempts have failed:", *causes]))
        if obstacle:
            self._say(f"the job is not started again: {obstacle}")
        return True

    def _obstacle(self) -> str | None:
        """Returns why there is no further attempt; empty where that needs no word."""
        before, last = self._failures[-2:-1], self._failures[-1]
        # What ran in an earlier attempt may be there again, or on another host.
        is_final = last.final and not (last.missing and before)
        if is_final or not self._options.restarts:
            return ""
        if before and last.step is not None and before[0].step == last.step:
            after = f"after {last.step} steps" if last.step else "before the first step"
            return f"it has failed {after} twice"
        if len(self._failures) > self._options.restarts:
            return f"--restarts {self._options.restarts} allows no more"
        left, needed = len(self._hosts()), self._options.hosts_needed
        if needed is not None and left < needed:
            return f"the hostfile has {left} hosts left of the {needed} that are needed"
        return None

    async def _is_stopped(self) -> bool:
        """Waits until the next attempt is due; returns whether a signal has come first."""
        longer = 0.0 if time.monotonic() - self._begun > _LONG else 2 * self._break
        self._break = min(_LONGEST_BREAK, max(_SHORTEST_BREAK, longer))
        if not self._stopped.done():  # while the job has been ending
            attempt, most = len(self._failures), self._options.restarts
            self._say(f"restart {attempt} of {most} in {self._break:g} s")
            await asyncio.wait([self._stopped], timeout=self._break)
        if self._stopped.done():
            say_failure(self._stopped.result(), self._say)
        return self._stopped.done()
