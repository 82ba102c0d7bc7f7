-------------------------------- MODULE Lock --------------------------------
(* The protocol of one reentrant lock on one Redis.

   Clients of this library acquire a key, renew it, enter it again, hand it to the
   next caller, and release it. Commands and answers are sets: each of them travels for
   any time, overtakes others, or is lost. Redis executes a script in one step.

   Time is counted down: the TTL in Redis and the time that a holder has left are
   numbers of ticks. At most MaxDrift ticks pass a client by: its clock is then slower
   than the clock of Redis. A client that takes no step while ticks pass is paused.

   A holder is alive while its context has not ended and it has ticks left. A context
   compares the clock by itself, so the end of the time needs no step of the client.

   Each turn of a client is one of its callers. The queue of these callers is not
   modelled: the next turn is the next caller. *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
  Clients,
  Turns,     \* callers of one client, one after the other
  Others,    \* callers of each other client
  Fields,    \* holder fields: 1..n
  Long,      \* lease of the watchdog, in ticks
  Short,     \* a fixed lease, which is not renewed
  Leases,    \* the leases that callers ask for
  Margin,    \* a holder stops believing so many ticks before its lease ends
  MaxDrift,  \* ticks that the clocks of the clients miss
  MaxLost,   \* commands and answers that are lost, and operations that are given up
  MaxLate,   \* commands that travel although their client has given them up
  May,       \* the actions that may happen besides acquire, renew, expire and release
  Mutant     \* the change of the protocol under trial

VARIABLES
  redis,     \* [holder, ttl, count]; holder 0: the key does not exist
  net,       \* commands on their way
  answers,   \* answers on their way
  client,    \* the state of each client
  counter,   \* fencing tokens that were drawn
  drift,     \* ticks that clocks have missed
  lost,      \* how much was lost or given up
  past       \* history, for the properties only

vars == <<redis, net, answers, client, counter, drift, lost, past>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Less(n) == Max(n - 1, 0)
Is(m) == Mutant = m

Nothing == [holder |-> 0, ttl |-> 0, count |-> 0]

(* client[p] is
     state     idle -> asking -> held -> releasing -> idle
                                 | \---> handing -> held, or idle
                                 \-----> idle: lost
     field     in Redis, or on its way there
     next      the field that a hand-off brings
     lease     the lease that the last acquire or hand-off asks for
     sent      ticks since the first send of a hand-off
     left      ticks for which Redis has confirmed the lease, less the margin
     most      the longest lease that an answer confirms
     holds     the caller that believes; of a mutant several
     count     1, or 2 after a re-entry
     sure      every command of this field was answered
     renewing  a renewal is on its way
     doing     another operation is on its way: "enter", "leave", "refresh"; or ""
     asks      the lease that this operation asks for
     orphans   fields that were abandoned
     turns     callers that have not had their turn *)
Idle(turns, orphans) ==
  [state |-> "idle", field |-> 0, next |-> 0, lease |-> 0, sent |-> 0, left |-> 0, most |-> Long,
   holds |-> {}, count |-> 0, sure |-> TRUE, renewing |-> FALSE, doing |-> "", asks |-> 0,
   orphans |-> orphans, turns |-> turns]

(* A hold has the time that is left to it, and the time that is left of the lease
   that its caller asked for, if that is not renewed. *)
Hold(turn, left, lease) ==
  [turn |-> turn, left |-> left, fixed |-> lease # Long, own |-> IF lease = Long THEN 0 ELSE lease]

Alive(h) == h.left > 0 \/ Is("a context ends by its timer only")
Believing(p) == {h \in client[p].holds : Alive(h)}

(* The library never uses a field twice. The model has few fields, and uses one again when no state, command
   or answer has it: nothing can tell it from a new one. *)
Travels(f, on) == \E m \in on : f \in {m.field, m.to}
InUse == UNION {{client[p].field, client[p].next} \cup client[p].orphans : p \in Clients}
Unused == {f \in Fields : f \notin InUse \cup past.released \cup {redis.holder, past.forced} /\ ~Travels(f, net \cup answers)}
Fresh == CHOOSE f \in Unused : \A g \in Unused : f <= g

Command(op, p, field) ==
  [op |-> op, p |-> p, field |-> field, to |-> 0, lease |-> 0, count |-> 0, age |-> 0, ok |-> FALSE, token |-> 0, grant |-> 0]

Init ==
  /\ redis = Nothing
  /\ net = {}
  /\ answers = {}
  /\ \E most \in Clients : client = [p \in Clients |-> Idle(IF p = most THEN Turns ELSE Others, {})]
  /\ counter = 0
  /\ drift = 0
  /\ lost = 0
  /\ past = [released |-> {}, expired |-> {}, forced |-> 0, since |-> 0, robbed |-> FALSE, grants |-> 0, grant |-> 0, token |-> 0,
             falls |-> FALSE, works |-> {}, had |-> {}]

-----------------------------------------------------------------------------
(* Time. *)

(* Awaited reports whether a client waits for the answer to a command. *)
Awaited(m) ==
  LET c == client[m.p] IN
  /\ c.field = m.field
  /\ CASE m.op = "acquire" -> c.state = "asking"
       [] m.op = "handoff" -> c.state = "handing" /\ c.next = m.to
       [] m.op = "release" -> c.state = "releasing"
       [] m.op = "renew"   -> c.state = "held" /\ c.renewing
       [] OTHER            -> c.state = "held" /\ c.doing = m.op

Tick ==
  \E slow \in SUBSET Clients :
    LET Aged(m) == IF m.p \in slow THEN m ELSE [m EXCEPT !.age = Min(@ + 1, Long)]
        Late(m) == IF Awaited(m) THEN Aged(m) ELSE [m EXCEPT !.age = Long]
        Older(h) == [h EXCEPT !.left = Less(@), !.own = Less(@)]
    IN /\ drift + Cardinality(slow) <= MaxDrift
       /\ drift' = drift + Cardinality(slow)
       /\ redis.ttl > 0 \/ \E p \in Clients : client[p].left > 0 \/ client[p].state = "handing"
       /\ redis' = IF redis.holder = 0 THEN redis
                   ELSE IF redis.ttl <= 1 THEN Nothing
                   ELSE [redis EXCEPT !.ttl = @ - 1]
       /\ net' = {Late(m) : m \in net}
       /\ answers' = {Aged(a) : a \in answers}
       /\ client' = [p \in Clients |->
            IF p \in slow THEN client[p]
            ELSE [client[p] EXCEPT !.left = Less(@), !.sent = IF client[p].state = "handing" THEN Min(@ + 1, Long) ELSE 0, !.holds = {Older(h) : h \in @}]]
       /\ past' = [past EXCEPT !.since = Less(@)]
       /\ UNCHANGED <<counter, lost>>

-----------------------------------------------------------------------------
(* Redis. *)

(* Script is the answer of Redis to a command, and the state of Redis after it. *)
Script(m) ==
  LET mine == redis.holder = m.field
      free == redis.holder = 0
      granted(f) == [holder |-> f, ttl |-> IF Is("an acquire sets no lease") THEN 0 ELSE m.lease, count |-> 1]
  IN CASE m.op = "acquire" ->
            IF free THEN [ok |-> TRUE, new |-> TRUE, redis |-> granted(m.field)]
            ELSE [ok |-> mine, new |-> FALSE, redis |-> redis]
       [] m.op = "renew" ->
            IF mine THEN [ok |-> TRUE, new |-> FALSE, redis |-> [redis EXCEPT !.ttl = Max(@, m.lease)]]
            ELSE IF free /\ Is("a renewal creates the lock") THEN [ok |-> TRUE, new |-> FALSE, redis |-> granted(m.field)]
            ELSE [ok |-> FALSE, new |-> FALSE, redis |-> redis]
       [] m.op \in {"enter", "leave"} ->
            IF ~mine THEN [ok |-> FALSE, new |-> FALSE, redis |-> redis]
            ELSE LET count == IF Is("a re-entry increments the count") /\ m.op = "enter" THEN redis.count + 1 ELSE m.count
                     ttl == IF Is("a re-entry lowers the TTL") THEN m.lease ELSE Max(redis.ttl, m.lease)
                 IN [ok |-> TRUE, new |-> FALSE, redis |-> [redis EXCEPT !.ttl = ttl, !.count = count]]
       [] m.op = "refresh" ->
            [ok |-> mine, new |-> FALSE, redis |-> IF mine THEN [redis EXCEPT !.ttl = m.lease] ELSE redis]
       [] m.op = "handoff" ->
            IF mine \/ (~free /\ redis.holder # m.to /\ Is("a hand-off replaces any holder"))
            THEN [ok |-> TRUE, new |-> TRUE, redis |-> granted(m.to)]
            ELSE [ok |-> redis.holder = m.to, new |-> FALSE, redis |-> redis]
       [] m.op = "release" ->
            IF mine \/ (~free /\ Is("a release frees any holder")) THEN [ok |-> TRUE, new |-> FALSE, redis |-> Nothing]
            ELSE [ok |-> FALSE, new |-> FALSE, redis |-> redis]

(* Robs reports whether a command takes the lock from a field that it does not name. *)
Robs(m, after) == redis.holder \notin {0, m.field} /\ after.holder # redis.holder

Brings(m) == IF m.op = "handoff" THEN m.to ELSE m.field

Execute(m) ==
  LET done == Script(m)
      draws == done.new /\ "token" \in May /\ ~Is("the token is drawn after the grant")
  IN /\ m \in net
     /\ net' = net \ {m}
     /\ redis' = done.redis
     /\ answers' = IF ~Awaited(m) THEN answers
                   ELSE answers \cup {[m EXCEPT !.ok = done.ok, !.token = IF draws THEN counter + 1 ELSE 0,
                          !.grant = IF done.new /\ "token" \in May THEN past.grants + 1 ELSE 0]}
     /\ counter' = IF draws THEN counter + 1 ELSE counter
     /\ past' = [past EXCEPT
          !.released = {f \in @ : f = done.redis.holder \/ Travels(f, net \ {m})},
          !.robbed = @ \/ Robs(m, done.redis),
          !.grants = IF done.new /\ "token" \in May THEN @ + 1 ELSE @]
     /\ UNCHANGED <<client, drift, lost>>

-----------------------------------------------------------------------------
(* The network loses. *)

Lose ==
  /\ lost < MaxLost
  /\ lost' = lost + 1
  /\ \E a \in answers : a.op \notin {"acquire", "renew"} /\ answers' = answers \ {a}
  /\ UNCHANGED <<redis, net, client, counter, drift, past>>

-----------------------------------------------------------------------------
(* Clients. *)

Send(m) == net' = net \cup {m}
Receive(a) == a \in answers /\ answers' = answers \ {a}

(* Hear is Receive for an answer that may say that the lock is lost. No other answer to its
   commands counts then. *)
Hear(a, gone) == a \in answers /\ answers' = IF gone THEN {other \in answers : other.p # a.p} ELSE answers \ {a}

(* Silent reports whether neither the command of p nor its answer is on its way. *)
Silent(op, p) == \A m \in net \cup answers : m.op # op \/ m.p # p \/ m.field # client[p].field

GivesUp == lost < MaxLost /\ lost' = lost + 1

(* Forgotten is the set of answers without the answers to op, for which p has stopped to wait. *)
Forgotten(op, p) == {a \in answers : a.op # op \/ a.p # p}

Ask(p) ==
  LET c == client[p]
      old == {m.field : m \in {m \in net : m.op = "acquire" /\ m.p = p}}
      again == Is("a field is used again") /\ old # {}
      field == IF again THEN CHOOSE f \in old : TRUE ELSE Fresh
  IN \E lease \in Leases :
     /\ c.state = "idle" /\ c.turns > 0 /\ (again \/ Unused # {})
     /\ client' = [client EXCEPT ![p].state = "asking", ![p].field = field, ![p].lease = lease]
     /\ Send([Command("acquire", p, field) EXCEPT !.lease = lease])
     /\ UNCHANGED <<redis, answers, counter, drift, lost, past>>

(* Grant is the state of a client after an answer that gives field the lock. The lease counts from the
   moment of sending, so many ticks ago. *)
Grant(c, field, lease, ago) ==
  LET from == IF Is("the lease counts from the answer") THEN 0 ELSE ago
      margin == IF Is("the lease has no margin") THEN 0 ELSE Margin
      left == Max(lease - margin - from, 0)
  IN IF left = 0 THEN [Idle(c.turns, c.orphans \cup {field}) EXCEPT !.sure = TRUE]
     ELSE [Idle(c.turns - 1, c.orphans) EXCEPT !.state = "held", !.field = field, !.lease = lease,
             !.left = left, !.count = 1, !.holds = {[Hold(c.turns, left, lease) EXCEPT !.own = Max(@ - from, 0)]}]

Granted(p, a) ==
  LET c == client[p]
      ago == IF a.op = "handoff" /\ ~Is("a hand-off counts from its last send") THEN c.sent ELSE a.age
      late == "token" \in May /\ Is("the token is drawn after the grant")
      token == IF late THEN counter + 1 ELSE a.token
  IN /\ a.op \in {"acquire", "handoff"} /\ a.p = p /\ Receive(a)
     /\ client' = [client EXCEPT ![p] =
          IF a.ok THEN Grant(c, Brings(a), a.lease, ago)
          ELSE [Idle(c.turns, c.orphans) EXCEPT !.state = IF Is("a refused waiter sleeps until it is woken") THEN "asleep" ELSE "idle"]]
     /\ counter' = IF late /\ a.ok THEN counter + 1 ELSE counter
     /\ past' = [past EXCEPT
          !.had = IF a.ok /\ "had" \in May THEN @ \cup {p} ELSE @,
          !.grant = IF a.ok THEN Max(@, a.grant) ELSE @,
          !.token = IF a.ok THEN Max(@, token) ELSE @,
          !.falls = @ \/ (a.ok /\ a.grant # 0 /\ (a.grant > past.grant) # (token > past.token))]
     /\ UNCHANGED <<redis, net, drift, lost>>

Abandon(p) ==
  LET c == client[p]
      op == IF c.state = "asking" THEN "acquire" ELSE IF c.state = "handing" THEN "handoff" ELSE "release"
      left == {c.field} \cup (IF c.next = 0 THEN {} ELSE {c.next})
      orphans == IF Is("an abandoned field is forgotten") THEN c.orphans ELSE c.orphans \cup left
  IN /\ c.state \in {"asking", "handing", "releasing"}
     /\ GivesUp
     /\ client' = [client EXCEPT ![p] = Idle(c.turns, orphans)]
     /\ answers' = Forgotten(op, p)
     /\ UNCHANGED <<redis, net, counter, drift, past>>

(* The reaper frees the lock if an orphan holds it. That an orphan does not hold it settles nothing
   while a command may land that brings it. How long this question travels makes no difference: no
   other command of its field follows. *)
Clear(p) ==
  \E f \in client[p].orphans :
    LET holds == redis.holder = f
        settles == holds \/ Is("one look settles an orphan")
          \/ ~\E m \in net : m.op \in {"acquire", "handoff"} /\ Brings(m) = f
    IN /\ settles /\ ~Is("no reaper clears orphans")
       /\ redis' = IF holds THEN Nothing ELSE redis
       /\ client' = [client EXCEPT ![p].orphans = @ \ {f}]
       /\ UNCHANGED <<net, answers, counter, drift, lost, past>>

Renew(p) ==
  LET c == client[p] IN
  /\ c.state = "held" /\ ~c.renewing /\ c.left < Long - Margin /\ \E h \in c.holds : ~h.fixed
  /\ client' = [client EXCEPT ![p].renewing = TRUE]
  /\ Send([Command("renew", p, c.field) EXCEPT !.lease = Long])
  /\ UNCHANGED <<redis, answers, counter, drift, lost, past>>

(* Confirm raises the time that a client has left, after an answer to a command that it sent so many ticks ago. *)
Confirm(c, lease, ago) ==
  LET most == IF Is("a late refresh is forgotten") THEN Long ELSE c.most
      left == Max(c.left, Max(Min(lease, most) - Margin - ago, 0))
  IN IF c.left = 0 THEN c
     ELSE [c EXCEPT !.left = left, !.holds = {IF h.fixed THEN h ELSE [h EXCEPT !.left = left] : h \in @}]

Lost(c) == Idle(c.turns, c.orphans)

Renewed(p, a) ==
  LET c == client[p]
      gone == ~a.ok /\ ~Is("a refused renewal is ignored")
  IN
  /\ a.op = "renew" /\ a.p = p /\ Hear(a, gone)
  /\ client' = [client EXCEPT ![p] =
       IF gone THEN Lost(c) ELSE Confirm([c EXCEPT !.renewing = FALSE], a.lease, a.age)]
  /\ UNCHANGED <<redis, net, counter, drift, lost, past>>

Unrenewed(p) ==
  LET c == client[p] IN
  /\ c.state = "held" /\ c.renewing /\ GivesUp
  /\ client' = [client EXCEPT ![p].renewing = FALSE, ![p].sure = FALSE]
  /\ answers' = Forgotten("renew", p)
  /\ UNCHANGED <<redis, net, counter, drift, past>>

Counted(op) == IF op = "enter" THEN 2 ELSE 1

Operate(p, op) ==
  \E lease \in IF op = "enter" THEN Leases ELSE IF op = "leave" THEN {0} ELSE {Short} :
  LET c == client[p]
      lower == op = "refresh"
      left == IF lower THEN Min(c.left, Max(Short - Margin, 0)) ELSE c.left
  IN /\ op \in May \/ (op = "leave" /\ "enter" \in May)
     /\ c.state = "held" /\ c.doing = "" /\ Believing(p) # {}
     /\ CASE op = "enter" -> c.count = 1 [] op = "leave" -> c.count = 2 [] OTHER -> c.sure /\ c.count = 1 /\ ~c.renewing
     /\ client' = [client EXCEPT ![p].doing = op, ![p].asks = lease, ![p].left = left,
          ![p].holds = {[h EXCEPT !.left = Min(@, left), !.fixed = @ \/ lower, !.own = IF lower THEN Short ELSE @] : h \in @}]
     /\ Send([Command(op, p, c.field) EXCEPT !.lease = lease, !.count = Counted(op)])
     /\ UNCHANGED <<redis, answers, counter, drift, lost, past>>

Operated(p, a) ==
  LET c == [client[p] EXCEPT !.doing = "", !.asks = 0]
      counted == CASE a.op = "enter" -> [c EXCEPT !.count = 2, !.holds = {[h EXCEPT !.fixed = FALSE] : h \in @}] [] a.op = "leave" -> [c EXCEPT !.count = 1] [] OTHER -> c
      raised == Confirm(counted, a.lease, a.age)
  IN /\ a.op \in {"enter", "leave", "refresh"} /\ a.p = p /\ Hear(a, ~a.ok)
     /\ client' = [client EXCEPT ![p] = IF ~a.ok THEN Lost(c) ELSE IF a.op = "leave" THEN counted ELSE raised]
     /\ UNCHANGED <<redis, net, counter, drift, lost, past>>

(* An operation that is given up may still land: nothing is lowered from then on, and no answer
   confirms more than a refresh that may land. *)
Unanswered(p) ==
  LET c == client[p] IN
  /\ c.state = "held" /\ c.doing # "" /\ GivesUp
  /\ client' = [client EXCEPT ![p].doing = "", ![p].asks = 0, ![p].sure = FALSE,
       ![p].most = IF c.doing = "refresh" THEN Short ELSE @,
       ![p].count = IF c.doing = "leave" THEN 1 ELSE @]
  /\ answers' = Forgotten(c.doing, p)
  /\ UNCHANGED <<redis, net, counter, drift, past>>

(* The context ends before the release is sent. *)
Release(p) ==
  LET c == client[p] IN
  /\ c.state = "held" /\ c.doing = "" /\ c.count = 1
  /\ client' = [client EXCEPT ![p] = [Idle(c.turns, c.orphans) EXCEPT !.state = "releasing", !.field = c.field,
       !.holds = IF Is("a context ends after the release") THEN c.holds ELSE {}]]
  /\ Send([Command("release", p, c.field) EXCEPT !.age = Long])
  /\ answers' = Forgotten("renew", p)
  /\ UNCHANGED <<redis, counter, drift, lost, past>>

Released(p, a) ==
  LET c == client[p] IN
  /\ a.op = "release" /\ a.p = p /\ Receive(a)
  /\ client' = [client EXCEPT ![p] = Idle(c.turns, c.orphans)]
  /\ past' = [past EXCEPT !.released = IF Travels(a.field, net) THEN @ \cup {a.field} ELSE @]
  /\ UNCHANGED <<redis, net, counter, drift, lost>>

HandOff(p) ==
  LET c == client[p] IN
  \E lease \in Leases :
    /\ "handoff" \in May /\ c.state = "held" /\ c.doing = "" /\ c.count = 1 /\ c.turns > 0 /\ Unused # {}
    /\ client' = [client EXCEPT ![p] = [Idle(c.turns, c.orphans) EXCEPT !.state = "handing", !.field = c.field,
         !.next = Fresh, !.lease = lease]]
    /\ Send([Command("handoff", p, c.field) EXCEPT !.to = Fresh, !.lease = lease])
    /\ answers' = Forgotten("renew", p)
    /\ UNCHANGED <<redis, counter, drift, lost, past>>

Resend(p) ==
  LET c == client[p] IN
  /\ \/ c.state = "releasing" /\ Silent("release", p)
        /\ Send([Command("release", p, c.field) EXCEPT !.age = Long])
     \/ c.state = "handing" /\ Silent("handoff", p)
        /\ Send([Command("handoff", p, c.field) EXCEPT !.to = c.next, !.lease = c.lease])
     \/ c.doing # "" /\ Silent(c.doing, p)
        /\ Send([Command(c.doing, p, c.field) EXCEPT !.lease = c.asks, !.count = Counted(c.doing)])
  /\ UNCHANGED <<redis, answers, client, counter, drift, lost, past>>

(* A run: the next caller of p has the lock, and Redis is not asked. The field stays. *)
Pass(p) ==
  LET c == client[p] IN
  \E lease \in Leases :
    LET confirmed == IF Is("a run outlives its lease") THEN Long ELSE c.left
        left == IF Is("a run lowers no deadline") THEN confirmed ELSE Min(confirmed, lease - Margin)
        next == Hold(c.turns, left, lease)
    IN /\ "pass" \in May /\ c.state = "held" /\ c.doing = "" /\ c.turns > 0
       /\ c.sure \/ Is("a run goes on with an unanswered command")
       /\ c.count = 1
       /\ c.left > 0 \/ Is("a run outlives its lease")
       /\ client' = [client EXCEPT ![p].turns = @ - 1, ![p].left = confirmed, ![p].lease = lease,
            ![p].holds = IF Is("two callers of a run hold at once") THEN @ \cup {next} ELSE {next},
            ![p].sure = TRUE]
       /\ UNCHANGED <<redis, net, answers, counter, drift, lost, past>>

(* The clock of the caller, or Redis, has ended the lease. It is not released. If a command has no answer, it
   may have raised the lease in Redis: the field is an orphan then. *)
Expire(p) ==
  LET c == client[p]
      raised == ~c.sure \/ c.renewing \/ c.doing # ""
      orphan == raised /\ ~Is("a raise without an answer is forgotten")
  IN
  /\ c.state = "held" /\ \A h \in c.holds : h.left = 0
  /\ past' = [past EXCEPT !.expired = IF redis.holder = c.field /\ ~raised THEN {c.field} ELSE @]
  /\ client' = [client EXCEPT ![p] = [Lost(c) EXCEPT !.orphans = IF orphan THEN @ \cup {c.field} ELSE @]]
  /\ answers' = {a \in answers : a.p # p}
  /\ UNCHANGED <<redis, net, counter, drift, lost>>

-----------------------------------------------------------------------------
(* What others do to Redis. *)

Force ==
  /\ "force" \in May /\ redis.holder # 0 /\ past.forced = 0
  /\ redis' = Nothing
  /\ past' = [past EXCEPT !.forced = redis.holder, !.since = Long]
  /\ UNCHANGED <<net, answers, client, counter, drift, lost>>

(* A failover: the new master does not know of the lock. *)
Forget ==
  /\ "forget" \in May /\ redis' = Nothing
  /\ UNCHANGED <<net, answers, client, counter, drift, lost, past>>

(* The clock of Redis steps: the lease ends at once. *)
Step ==
  /\ "step" \in May /\ redis' = Nothing
  /\ UNCHANGED <<net, answers, client, counter, drift, lost, past>>

(* Code looks at its context once, and works on although the context ends. *)
Work(p) ==
  /\ "work" \in May
  /\ past' = [past EXCEPT !.works = IF p \in @ THEN @ \ {p} ELSE IF Believing(p) # {} THEN @ \cup {p} ELSE @]
  /\ UNCHANGED <<redis, net, answers, client, counter, drift, lost>>

(* The process dies. Its commands travel on. *)
Die(p) ==
  /\ "die" \in May /\ client[p].state # "dead" /\ \A q \in Clients : client[q].state # "dead"
  /\ client' = [client EXCEPT ![p] = [Idle(0, {}) EXCEPT !.state = "dead"]]
  /\ answers' = {a \in answers : a.p # p}
  /\ past' = [past EXCEPT !.expired = InUse]
  /\ UNCHANGED <<redis, net, counter, drift, lost>>

-----------------------------------------------------------------------------

Client(p) ==
  \/ Ask(p) \/ Abandon(p) \/ Clear(p) \/ Renew(p) \/ Unrenewed(p) \/ Unanswered(p)
  \/ Release(p) \/ HandOff(p) \/ Resend(p) \/ Pass(p) \/ Expire(p) \/ Work(p)
  \/ \E op \in {"enter", "leave", "refresh"} : Operate(p, op)
  \/ \E a \in answers : Granted(p, a) \/ Renewed(p, a) \/ Operated(p, a) \/ Released(p, a)

Untimed ==
  \/ Lose \/ Force \/ Forget \/ Step
  \/ \E m \in net : Execute(m)
  \/ \E p \in Clients : Client(p) \/ Die(p)

Next == Tick \/ Untimed

Spec == Init /\ [][Next]_vars

(* While Redis answers in time: no tick passes while a client waits for it. *)
Answers == answers = {} /\ \A m \in net : ~Awaited(m)

PromptTick == Answers /\ Tick
PromptNext == PromptTick \/ Untimed

(* Fairness: each of these actions happens if nothing prevents it. No client has to give up. *)
Hears(p) == \E a \in answers : Granted(p, a) \/ Operated(p, a) \/ Released(p, a)

Fairness ==
  /\ SF_vars(PromptTick)
  /\ \A p \in Clients :
       /\ WF_vars(Ask(p)) /\ WF_vars(Clear(p)) /\ WF_vars(Release(p)) /\ WF_vars(Resend(p)) /\ WF_vars(Expire(p))
       /\ WF_vars(Operate(p, "leave")) /\ WF_vars(Hears(p)) /\ WF_vars(\E m \in net : m.p = p /\ Execute(m))

FairSpec == Init /\ [][PromptNext]_vars /\ Fairness

(* The reaper alone: nothing has time pass, so that no lease ends. *)
ReaperSpec ==
  Init /\ [][PromptNext]_vars /\ \A p \in Clients : WF_vars(Clear(p)) /\ WF_vars(\E m \in net : m.p = p /\ Execute(m))

-----------------------------------------------------------------------------
(* Properties. *)

Forced(p) == client[p].field = past.forced /\ past.forced # 0

Exclusion ==
  Cardinality(UNION {{<<p, h>> : h \in Believing(p)} : p \in {q \in Clients : ~Forced(q)}}) <= 1

AliveIsInRedis ==
  \A p \in Clients : Believing(p) # {} /\ ~Forced(p) => redis.holder = client[p].field

LeaseIsKept == \A p \in Clients : \A h \in Believing(p) : h.fixed => h.own > 0

ForcedIsKnown == \A p \in Clients : Believing(p) # {} /\ Forced(p) => past.since > 0

ReleasedStaysAway == redis.holder \notin past.released

NothingOfOthers == ~past.robbed

(* A holder in Redis is known to its client: as the lock that it holds, or is about to, or as an
   orphan; or its lease has ended by the clock of its client, and ends in Redis within the margin. *)
Known == UNION {{client[p].field, client[p].next} \cup client[p].orphans : p \in Clients}
NothingLeft == redis.holder \in {0} \cup Known \cup past.expired

LeaseInRedis == redis.holder # 0 => redis.ttl > 0

CountIsKnown ==
  \A p \in Clients :
    LET c == client[p] IN
    c.state = "held" /\ c.doing = "" /\ c.sure /\ redis.holder = c.field => redis.count = c.count

TokensRise == ~past.falls

(* Bounds of the search: so many commands travel whose answers no client awaits, and so many
   grants draw a token. *)
Bounds ==
  /\ Cardinality({m \in net : ~Awaited(m)}) <= MaxLate
  /\ past.grants <= Turns + Others + 1

EveryTurnComes == <>(\A p \in Clients : client[p].turns = 0)
OrphansAreCleared == \A p \in Clients : \A f \in Fields : f \in client[p].orphans ~> redis.holder # f

Symmetry == Permutations(Clients)

OneWorks == Cardinality(past.works) <= 1
NotTwice == Cardinality(past.had) <= 1
=============================================================================
