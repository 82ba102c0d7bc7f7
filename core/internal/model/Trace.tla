------------------------------- MODULE Trace -------------------------------
(* Recorded runs of the library, checked against the protocol.

   The test writes module Runs. Runs[n] is one run, seen from outside:
     of      the client of each operation
     token   the rank of the fencing token that it got, 0 without one
     steps   <<what, operation>>, in the order in which they were seen
     lease   the lease that it asks for
     ticks   so many ticks pass at most, a bound of the search

   An operation is a hold, with the acquisition before it, or a force release. Its steps are
     asks       Acquire is called
     acquired   Acquire returned a hold
     refused    Acquire returned an error
     alive      the holder found its context alive
     enters, entered     a re-entry was called, and returned a hold
     leaves, left        the release of the re-entry was called, and returned nil
     ends, ended         Release was called, and returned nil
     lost       the context had ended, or an operation returned ErrLost
     unsure     an operation returned another error
     forces, forced      ForceRelease was called, and freed a holder

   Between two steps any actions of the protocol may happen, within limits that keep the search
   small: a client asks only for the caller that gets the lock next, and ends a hold only for a
   caller that releases it. Attempts that Redis refuses are left out, because they change nothing
   for others. Time passes only for a holder that loses its lock. Answers are lost only right
   before a step that says so. A run is accepted if the protocol gets to its last step. *)
EXTENDS Lock, Runs, Sequences

VARIABLES
  run,       \* the run that is followed
  at,        \* its next step
  said,      \* the last step of each operation
  holder,    \* the operation that has the hold of a client, 0: none that has said so
  ends,      \* the operation whose lock a client is giving back, 0: none
  ended,     \* operations that gave their lock back while they had it
  ticks      \* ticks that have passed

seen == <<run, at, said>>

TraceInit ==
  /\ Init
  /\ run \in DOMAIN Runs
  /\ at = 1
  /\ said = [o \in DOMAIN Runs[run].of |-> ""]
  /\ holder = [p \in Clients |-> 0]
  /\ ends = [p \in Clients |-> 0]
  /\ ended = {}
  /\ ticks = 0

Of(o) == Runs[run].of[o]
Rank(o) == Runs[run].token[o]
Operations == DOMAIN said
Has(o) == holder[Of(o)] = o

Steps == Runs[run].steps
Expects(do) == at <= Len(Steps) /\ Steps[at][1] = do

(* The caller that gets the lock next, 0: no caller gets it. *)
Acquires == {i \in at..Len(Steps) : Steps[i][1] = "acquired"}
Winner == IF Acquires = {} THEN 0 ELSE Steps[CHOOSE i \in Acquires : \A j \in Acquires : i <= j][2]
Waits(p) == Winner # 0 /\ Of(Winner) = p /\ said[Winner] = "asks"
Wants(p) == Waits(p) /\ client'[p].lease = Runs[run].lease[Winner]

(* A holder that loses its lock is about to see that, or another client is about to get it. *)
Loses ==
  /\ Expects("lost") \/ Expects("acquired")
  /\ \E p \in Clients : \E i \in at..Len(Steps) : Steps[i] = <<"lost", holder[p]>>
Forces == \E o \in Operations : said[o] = "forces"

(* Tokens rise in the order in which callers get them. *)
Rises(o) == Rank(o) = 0 \/ \A other \in Operations : said[other] \notin {"", "asks"} => Rank(other) < Rank(o)

See ==
  /\ at <= Len(Steps)
  /\ LET do == Steps[at][1]
         o == Steps[at][2]
         p == Of(o)
         c == client[p]
     IN /\ CASE do = "acquired" -> holder[p] = 0 /\ Believing(p) # {} /\ Rises(o)
             [] do = "alive"    -> Has(o) /\ Believing(p) # {}
             [] do = "entered"  -> Has(o) => c.doing = "" /\ c.count = 2
             [] do = "left"     -> Has(o) => c.doing = "" /\ c.count = 1
             [] do = "ended"    -> o \in ended
             [] do = "lost"     -> ~(Has(o) /\ Believing(p) # {})
             [] do = "forced"   -> past.forced # 0
             [] OTHER           -> TRUE
        /\ holder' = IF do = "acquired" THEN [holder EXCEPT ![p] = o] ELSE holder
        /\ said' = [said EXCEPT ![o] = do]
  /\ at' = at + 1
  /\ UNCHANGED <<vars, run, ends, ended, ticks>>

End(p) ==
  /\ client[p].state = "held" /\ holder[p] # 0 /\ said[holder[p]] = "ends"
  /\ \/ (Release(p) \/ (HandOff(p) /\ Wants(p))) /\ ended' = ended
        /\ ends' = [ends EXCEPT ![p] = IF Believing(p) # {} THEN holder[p] ELSE 0]
     \/ Pass(p) /\ Wants(p) /\ ends' = ends
        /\ ended' = IF Believing(p) # {} THEN ended \cup {holder[p]} ELSE ended
  /\ holder' = [holder EXCEPT ![p] = 0]
  /\ UNCHANGED <<seen, ticks>>

(* A lock is given back when Redis says so. *)
Back(a) ==
  /\ Granted(a.p, a) \/ Released(a.p, a)
  /\ ended' = IF a.ok /\ a.op # "acquire" THEN ended \cup {ends[a.p]} ELSE ended

Hidden(p) ==
  \/ Waits(p) /\ Ask(p) /\ Wants(p)
  \/ Abandon(p) \/ Clear(p) \/ Renew(p) \/ Unrenewed(p) \/ Unanswered(p) \/ Resend(p) \/ Expire(p)
  \/ holder[p] # 0 /\ said[holder[p]] = "enters" /\ Operate(p, "enter")
  \/ holder[p] # 0 /\ said[holder[p]] = "leaves" /\ Operate(p, "leave")
  \/ \E a \in answers : Renewed(p, a) \/ Operated(p, a)

Hide ==
  /\ \/ Loses /\ Tick /\ ticks < Runs[run].ticks /\ ticks' = ticks + 1 /\ ended' = ended
     \/ ticks' = ticks /\ ended' = ended
        /\ (Lose \/ (Forces /\ Force) \/ (\E m \in net : Execute(m)) \/ (\E p \in Clients : Hidden(p)))
     \/ ticks' = ticks /\ \E a \in answers : Back(a)
  /\ lost' = lost \/ Expects("unsure")
  /\ holder' = [p \in Clients |-> IF client'[p].state = "held" THEN holder[p] ELSE 0]
  /\ ends' = [p \in Clients |-> IF client'[p].state \in {"releasing", "handing"} THEN ends[p] ELSE 0]
  /\ UNCHANGED seen

TraceNext == See \/ Hide \/ \E p \in Clients : End(p)

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, seen, holder, ends, ended, ticks>>

(* Register n has the furthest step of Runs[n]. Each one is printed. A run that was accepted is
   followed no further. *)
ASSUME \A n \in DOMAIN Runs : TLCSet(n, 0)
Reached ==
  IF at > TLCGet(run) THEN TLCSet(run, at) /\ PrintT(<<"reached", run, at>>)
  ELSE TLCGet(run) <= Len(Steps)
=============================================================================
