"""Battery B5: receive, re-label, undo, crash, resume in any order; the original labels are never lost (G1, T2)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import fedrela
from helpers.batteries import count, tried
from helpers.core_cases import make
from helpers.forks import memory


class Client(RuleBasedStateMachine):
    """A client that may crash between any two actions; on disk there is a ledger or nothing."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="fedrela-b5-", dir=memory()))
        self.file = self.folder / "ledger.json"

    def teardown(self):
        tried()
        shutil.rmtree(self.folder)

    @initialize(n=st.integers(1, 60), C=st.integers(2, 8), seed=st.integers(0, 10_000))
    def join(self, n, C, seed):
        self.case = make(n, C, 0.2, seed, skew=1.0, skill=1.0, digits=None)
        self.originals = self.case.y.tobytes()
        self.posterior = self.case.Q
        self.labels, self.ledger = self.case.y.copy(), None

    @rule(seed=st.integers(0, 10_000), skill=st.sampled_from([-2.0, 0.0, 5.0]))
    def receive_a_model(self, seed, skill):
        """Another global model arrives, good or bad: another posterior for the same samples."""
        noise = np.random.default_rng(seed).normal(size=self.case.Q.shape)
        noise[np.arange(self.case.n), self.case.y] += skill
        self.posterior = np.exp(noise) / np.exp(noise).sum(axis=1, keepdims=True)

    @rule(tau=st.floats(0, 1), seed=st.integers(0, 100), saved=st.booleans())
    def relabel(self, tau, seed, saved):
        """Every pass starts from the original labels, which the last ledger holds."""
        start = self.case.y if self.ledger is None else fedrela.undo(self.ledger, self.labels)
        done = fedrela.relabel(self.posterior, start, tau=tau, seed=seed)
        assert done.moved.size <= int(tau * self.case.n) * (self.case.C - 1)
        if saved:  # without it: the crash came before the write
            done.ledger.save(self.file, overwrite=True)
        self.labels, self.ledger = done.labels, done.ledger

    @rule()
    def relabel_with_a_broken_model(self):
        start = self.case.y if self.ledger is None else fedrela.undo(self.ledger)
        tried(0, faults=1)
        done = fedrela.relabel(self.posterior * np.nan, start)
        assert done.refusal
        assert np.array_equal(done.labels, self.case.y)

    @rule()
    def undo(self):
        if self.ledger is not None:
            self.labels = fedrela.undo(self.ledger, self.labels)

    @rule(leftover=st.binary(max_size=20))
    def crash_and_resume(self, leftover):
        """Memory is gone; a half-written file aside may be left; what is on disk decides."""
        tried(0, faults=1)
        (self.folder / ".ledger.json.000000000000.part").write_bytes(leftover)
        self.labels, self.ledger = self.case.y.copy(), None
        if self.file.exists():
            self.ledger = fedrela.Ledger.load(self.file)
            self.labels = self.ledger.labels

    @invariant()
    def originals_are_safe(self):
        if not hasattr(self, "case"):
            return
        assert self.case.y.tobytes() == self.originals
        if self.ledger is not None:
            assert fedrela.undo(self.ledger).tobytes() == self.originals
        if self.file.exists():
            assert fedrela.undo(self.file).tobytes() == self.originals


TestRepeatedRequests = Client.TestCase
TestRepeatedRequests.settings = settings(
    max_examples=count(100, 2000), stateful_step_count=50, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
