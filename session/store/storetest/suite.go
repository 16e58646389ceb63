// Package storetest is the one suite every implementation of session.Store runs: each test is a sentence of the port's contract. Fault
// wraps a store to make it fail, stall or fill up.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Opener opens another process's access to one and the same store.
type Opener func(t *testing.T, instance string) session.Store

// Run runs the suite. fresh makes an empty store and returns how to open it; what was opened is closed by a Cleanup of the test.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	for _, c := range []struct {
		name string
		f    func(t *testing.T, open Opener)
	}{
		{"AppendedEntriesReadBackAsTheyWere", appended},
		{"ViewsShowFactsDurableAndTaskEvents", views},
		{"PagesGoForthAndBackWithoutHoleOrRepeat", pages},
		{"EntriesOfANewerVersionAreKeptAsTheyAre", newer},
		{"AGapIsRefusedAndWhatIsBehindItToo", gaps},
		{"OneFailingBatchHarmsNoOtherOfItsGroup", isolated},
		{"AppendReturnsAtOnceHoweverManyWait", waiting},
		{"LargeBatchesAreOneTransaction", large},
		{"ManyWritersAndReadersAtOnceKeepEveryOrder", crowd},
		{"OrderIsTheSeqWhateverTheClockSays", clock},
		{"AStaleLeaseIsFenced", fenced},
		{"ALeaseGoesBackWithABatchAndIsTakenAgainWithTheNextUnlessAnotherHadIt", retaken},
		{"ALivingOwnerIsBusyADeadOneIsTakenOver", owners},
		{"AKeyIsClaimedOnceWithItsBatch", keys},
		{"RandomUseOfTwoProcessesMatchesTheModel", modelled},
		{"ListsAreNewestFirstAndShowNothingTwice", lists},
		{"ARowIsReplacedWholeOrLeft", rows},
		{"WhatIsUnknownIsNotFound", unknown},
		{"PortableNumbersPageATurn", portable},
		{"TurnsAreListedNewestFirstAndKeepTheirPlaces", turns},
		{"FoldStaysUntilANewerOne", folds},
		{"DeleteRemovesEverythingAndIDsMayReturn", deletes},
		{"ASessionThatAnotherProcessDeletedIsNotTheOneThatCameIntoItsPlace", replaced},
		{"WatchRingsForOthersCommitsAndLetters", watches},
		{"WatchMissesNothingAcrossADeletion", watchesDeletion},
		{"WritesAreTakenWhateverWasRefusedAndAskingLeavesNothing", writable},
		{"ALetterHasOneOutcomeOrIsWithdrawn", letters},
		{"RulesBelongToAWorkspaceAndTheNewerReplacesTheOlder", rules},
		{"RulesOfOneProcessAreSeenByTheOthersAndOutliveIt", rulesOfTwo},
		{"RulesAddedAtOnceAreAllThereOnce", rulesAtOnce},
		{"PruneFollowsTheCatalogue", prunes},
		{"PruneOfASessionsOwnNotesGoesByTheirTime", prunesNotes},
		{"UsageIsSummedPerDayModelAndSession", usages},
		{"EveryAppendIsAnsweredInOrderAlsoAtClose", closes},
		{"AfterCloseEverythingIsRefused", closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) }) // the first to be registered runs last: all stores are closed
			c.f(t, fresh(t))
		})
	}
}

var ctx = context.Background()

const id = session.SessionID("20260102_101112_0000000a")

var base = time.Date(2026, 1, 2, 10, 11, 12, 345678000, time.UTC)

// Entry makes an encoded entry.
func Entry(seq session.Seq, turn session.TurnID, b protocol.Body) session.Entry {
	e, err := protocol.Encode(protocol.Head{Time: base.Add(time.Duration(seq) * time.Second), EventID: fmt.Sprintf("%032x", seq), Session: id, Turn: turn}, b)
	if err != nil {
		panic(err)
	}
	e.Seq, e.PortableFirst = seq, 1
	return e
}

func turnID(n int) session.TurnID { return session.TurnID(fmt.Sprintf("%032x", n)) }

// Create makes a session and takes its lease.
func Create(t *testing.T, s session.Store, id session.SessionID) session.Lease {
	t.Helper()
	if err := s.Create(ctx, session.Meta{ID: id, ConversationID: "conv_" + string(id), Workspace: "/w", Created: base}); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Append appends and waits.
func Append(s session.Store, l session.Lease, b session.Batch) error {
	ch := make(chan error, 1)
	s.Append(l, b, func(err error) { ch <- err })
	select {
	case err := <-ch:
		return err
	case <-time.After(30 * time.Second):
		return errors.New("append was not answered in 30 s")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func read(t *testing.T, s session.Store, v protocol.View) []session.Entry {
	t.Helper()
	es, err := s.Read(ctx, id, 0, 1000, v)
	must(t, err)
	return es
}
