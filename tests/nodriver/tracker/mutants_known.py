"""Trackers that take steps for known that are not, or that take known ones in a wrong way. One that takes records one
by one beside each of them shows it.

What is not here, as it cannot change what anybody sees:

- What only makes fewer steps known, or finds them later.
- Ended replicas that are not put back: no known step gives any back. Whatever has ended them has ended all kept steps,
  and only the next step with a job there begins with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tests.nodriver.tracker import test_recognition as first
from tests.nodriver.tracker import test_recognition_things as things


class KnownMutant(NamedTuple):
    """``old`` is in the text of ``module`` once, and ``new`` stands in its place. ``shown``: the test that fails."""

    name: str
    module: str
    old: str
    new: str
    shown: Callable[[], None]


_M = KnownMutant

GUARDS: dict[str, tuple[KnownMutant, ...]] = {
    "directory": (
        _M("any directory", "memo", "self.active == other.active and self.directory == other.directory)",
           "self.active == other.active)", partial(first.test_a_step_may_go_on_otherwise, False)),
        _M("any replicas", "memo", "self.directory == other.directory)",
           "self.directory.valid == other.directory.valid)", partial(first.test_a_step_may_go_on_otherwise, False)),
        _M("any replicas of memory that has ended", "directory", "tuple([tuple(ended) for ended in self._ended])",
           "tuple([() for ended in self._ended])", things.test_replicas_of_memory_that_has_ended),
        _M("any order of use", "directory", "tuple([tuple(held.items()) for held in self.held])",
           "tuple([tuple(sorted(held.items())) for held in self.held])",
           things.test_replicas_that_are_used_in_another_order),
        _M("a known step leaves the directory", "recognition",
           "            self._directory.put(memo.after.directory)\n", "", first.test_steps_in_turn),
    ),
    "active streams": (
        _M("any streams", "memo", "self.active == other.active and self", "self",
           things.test_work_that_goes_on_behind_the_step),
        _M("a known step leaves the streams", "recognition",
           "            placing.streams.put(memo.after.active)\n", "            pass\n",
           things.test_work_that_goes_on_behind_the_step),
    ),
    "placement token": (
        _M("any token", "memos", "return self._starting.get((state, token), ())",
           "return [memo for (one, _), found in self._starting.items() if one == state for memo in found]",
           first.test_a_mixture_of_placements),
        _M("none is a token", "recognition", "if token is None:", "if False:",
           things.test_a_placement_of_which_nobody_can_say),
        _M("another place in a mixture", "placements.followed",
           "return self._version, tuple([placed.chosen for placed in self._placed.values()])", "return self._version",
           first.test_a_mixture_of_placements),
        _M("another class that is met", "placements.followed", "            self._version += 1\n",
           "            pass\n", things.test_a_class_that_a_placement_meets_for_the_first_time),
    ),
    "known tables": (
        _M("any table", "events", "            if now.session.known(self.program, self.parameters) != self.known:",
           "            if False:", partial(first.test_tables, False, False)),
        _M("tables are looked at once", "events", "        if version != self.same:", "        if self.same < 0:",
           partial(first.test_tables, False, True)),
        _M("nothing is forgotten once nothing was", "events", "        if contents.places != self.nothing:",
           "        if self.nothing < 0:", things.test_bytes_become_known_that_a_step_writes),
        _M("more need not be forgotten than is replaced", "journal", "            written.ranges.remove(lo, hi)",
           "            written.ranges.clear()",
           things.test_a_step_writes_what_is_known_and_then_makes_other_bytes_known),
    ),
    "graph nodes": (
        _M("any nodes", "events", "                if not _alike(mine, its, self.free.get(position, ())):",
           "                if False:", partial(first.test_graphs, False)),
        _M("the nodes' parameters of the step that was kept", "events",
           "            parameters = bytes(tails.launch_parameters(graph.nodes[self.node]))", "            pass",
           partial(first.test_graphs, False)),
    ),
    "host addresses": (
        _M("any host address", "events",
           "return address == self.address or now.session.memory.find(address + self.beyond) is None", "return True",
           first.test_host_memory_that_no_gpu_sees_may_be_anywhere),
        _M("any address instead of memory that GPUs see", "memo",
           "if side.kind == lib.WIRE_SIDE_HOST and memory.find(side.address + beyond) is None:",
           "if side.kind == lib.WIRE_SIDE_HOST:",
           things.test_host_memory_that_gpus_see_is_a_part_of_what_a_step_touches),
    ),
    "parameters that matter": (
        _M("no parameters matter", "launches",
           "needed = Intervals([(part.start, part.stop) for part in self.parameters])", "needed = Intervals()",
           partial(first.test_parameters_that_matter_must_not, False)),
        _M("no parameters of opaque kernels matter", "launches",
           "return _NOTHING if not self._promised else _EVERYTHING", "return _NOTHING",
           first.test_opaque_kernels_with_a_promise_depend_on_all_their_parameters),
    ),
    "sequence numbers": (
        _M("a step begins with any number", "recognition", "if first != self._taker.expected or", "if",
           things.test_a_gap_at_the_beginning_of_a_step),
        _M("a step goes on with any numbers", "pattern",
           "            if not np.array_equal(part[self._places[one:other] - begin] - base, "
           "self._relative[one:other]):", "            if False:", things.test_a_gap_within_a_step),
        _M("outcomes of any record", "pattern", "                self._numbers.append(at + _OUTCOME_OF)\n", "",
           things.test_an_outcome_of_another_record),
        _M("steps with gaps are kept", "recognition", "if not pattern.numbered:", "if False:",
           things.test_a_gap_in_each_step),
        _M("the next number is that of the kept step", "recognition",
           "        self._taker.expected = match.first + memo.pattern.records\n", "",
           partial(first.test_a_step_that_comes_again_is_known, False)),
    ),
    "things that come and go": (
        _M("steps outlive them", "recognition", "        self.memos.clear()\n", "        pass\n",
           things.test_a_stream_that_is_another_one),
        _M("nobody says that something has changed", "tracker", "                self._steps.changed()\n",
           "                pass\n", things.test_a_stream_that_is_another_one),
        _M("memory of graphs comes unseen", "recognition", "if version != self._version:", "if False:",
           things.test_memory_that_a_graph_allocates),
        _M("a GPU is withdrawn unseen", "tracker", "            self._steps.leave()\n            self._steps.disturb()",
           "            self._steps.leave()", partial(first.test_what_was_sent_is_gone, False)),
    ),
    "steps that are no model": (
        _M("they are kept", "recognition", "if draft.bytes > LARGEST or journal.spoiled:",
           "if draft.bytes > LARGEST:", first.test_a_call_that_fails),
        _M("a launch fails", "placing", "        self._journal.spoil()\n        segment = self._segment",
           "        segment = self._segment", first.test_a_call_that_fails),
        _M("a GPU is withdrawn in it", "recognition", "        self._state = None\n        self._journal.spoil()",
           "        self._state = None", partial(first.test_what_was_sent_is_gone, True)),
        _M("an image may come", "launches",
           "                self._journal.spoil()  # it may come at any time", "                pass",
           first.test_a_kernel_whose_image_may_come),
        _M("contents of an earlier step are told", "journal", "        else:\n            self.spoil()\n",
           "        else:\n            self.note(events.Told(self.place, gathered))\n",
           things.test_contents_of_the_step_before),
    ),
    "undo": (
        _M("contents stay", "memo", "            self.session.contents.restore(self._saved)", "            pass",
           things.test_a_step_that_is_taken_back_takes_back_what_it_has_made_known),
        _M("what is forgotten stays so", "events", "            if touched:\n                now.save()",
           "            if False:\n                now.save()",
           things.test_a_step_that_is_taken_back_has_forgotten_nothing),
        _M("uploads stay", "events", "        now.save()\n        now.session.uploaded", "        now.session.uploaded",
           things.test_a_step_that_is_taken_back_takes_back_what_it_has_made_known),
        _M("nodes of graphs stay", "memo", "                graph.nodes[position] = node", "                pass",
           things.test_a_step_that_is_taken_back_takes_back_changes_of_graphs),
        _M("decisions are given twice", "recognition",
           "        del self._placing.decisions[before:before + match.given]", "        pass",
           partial(first.test_a_step_may_go_on_otherwise, True)),
        _M("a step goes on when a GPU is withdrawn", "tracker",
           "            self._steps.leave()\n            self._steps.disturb()", "            self._steps.disturb()",
           partial(first.test_what_was_sent_is_gone, True)),
    ),
    "batches": (
        _M("decisions come when the step is over", "recognition",
           "        self._placing.decisions += match.given_out()\n        if match.whole:\n",
           "        if match.whole:\n            self._placing.decisions += match.given_out()\n",
           first.test_decisions_come_with_the_records_that_close_their_segments),
        _M("launches that came are not open", "recognition",
           "return self._placing.open if self._match is None else tuple(self._match.open)",
           "return self._placing.open", things.test_the_end_in_a_step_that_is_known),
        _M("the end comes within a step", "tracker",
           "            self._steps.leave()\n        self._placing.step_over()",
           "            pass\n        self._placing.step_over()", things.test_the_end_in_a_step_that_is_known),
        _M("records may be cut", "pattern",
           "return found if self.starts[found] == word * WORD else None", "return found",
           things.test_records_that_are_cut),
    ),
    "decisions of now": (
        _M("segments are not counted", "recognition", "placing.number = match.number", "pass",
           partial(first.test_a_step_that_comes_again_is_known, False)),
        _M("the parameters of the step that was kept", "events",
           "            parameters = now.raw[at:at + len(parameters)]", "            pass",
           partial(first.test_parameters_that_do_not_matter_may_change, False)),
    ),
    "assumed anew": (
        _M("nothing is assumed once nothing was", "events", "        known = contents.places != self._nothing",
           "        known = self._nothing < 0", things.test_bytes_become_known_that_a_step_gathers),
        _M("what a launch relied on is not compared", "events", "contents.assumed(one.gather, self._relied)",
           "contents.assumed(one.gather, ())", things.test_a_table_that_its_segment_writes),
        _M("contents were never gathered before they were told", "events",
           "now.session.told(now.record(self.place), self.gathered)",
           "now.session.told(now.record(self.place), False)",
           things.test_contents_that_were_gathered_before_they_were_told),
    ),
    "counts": (
        _M("tally", "recognition", "        self._taker.tally.add(memo.done)\n", "",
           partial(first.test_parameters_that_do_not_matter_may_change, True)),
        _M("what is ambiguous", "recognition", "            self._placement.ambiguous += memo.ambiguous",
           "            pass", first.test_what_is_ambiguous_is_counted),
        _M("classes", "placing", "self._placement.step_over(self.classes.repeat(past))",
           "self._placement.step_over(None)", partial(first.test_parameters_that_do_not_matter_may_change, True)),
        _M("what a placement is told of them", "placing", "self._placement.step_over(self.classes.repeat(past))",
           "self.classes.repeat(past)", first.test_a_mixture_of_placements),
        _M("what the first step wrote counts for good", "recognition",
           "if expected is not None and self._placing.classes.follows:", "if expected is not None:",
           things.test_what_comes_before_the_first_step_is_over_counts_as_written_later),
    ),
    "limits": (
        _M("long steps are kept", "recognition", "if draft.bytes > LARGEST or journal.spoiled:",
           "if journal.spoiled:", first.test_a_step_that_is_too_long_is_not_kept),
        _M("more and more steps are kept", "memos", "        while len(self._all) > self._most or",
           "        while", first.test_only_so_many_are_kept),
        _M("more and more keys are known", "habits", "if len(self._seen) > MOST_SEEN:", "if False:",
           first.test_keys_that_are_known_are_not_more_and_more),
        _M("steps are kept in vain", "habits", "self.wait = min(2 * self.wait, MOST_WAIT)", "self.wait = 1",
           first.test_what_is_never_met_is_kept_ever_more_rarely),
    ),
}  # fmt: skip
"""By what they do not mind, or do not do."""
