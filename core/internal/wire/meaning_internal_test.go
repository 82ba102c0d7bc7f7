package wire

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// The meaning of a reply is found however the reply is wrapped: by go-redis, by a hook, by an operation, with
// an earlier error of its node, or by a script of Redis 6 or 7.
func TestMeaningOf(t *testing.T) {
	t.Parallel()
	const misconf = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."
	for text, want := range map[string]struct {
		passes, rejects, unanswered bool
	}{
		// Temporary refusals.
		"LOADING Redis is loading the dataset in memory":                                           {passes: true},
		"LOADING KeyDB is loading the dataset in memory":                                           {passes: true},
		"LOADING Dragonfly is loading the dataset in memory":                                       {passes: true},
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":   {passes: true},
		"BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.": {passes: true},
		"BUSY Redis is busy running a module command.":                                             {passes: true},
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":         {passes: true},
		"NOREPLICAS Not enough good replicas to write.":                                            {passes: true},
		misconf: {passes: true},
		"MISCONF Errors writing to the AOF file: No space left on device":                              {passes: true},
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)": {passes: true},
		"ERR max number of clients reached":                                                            {passes: true},
		"ERR max number of clients + cluster connections reached":                                      {passes: true},
		"ERR max concurrent connections exceeded":                                                      {passes: true},
		"ERR server is shutting down":                                                                  {passes: true},
		"SHUTDOWN in progress":                                                                         {passes: true},
		"ERR Service unavailable":                                                                      {passes: true},
		"no upstream host":                                                                             {passes: true},
		"TRYAGAIN Multiple keys request during rehashing of slot":                                      {passes: true},
		"CLUSTERDOWN Hash slot not served":                                                             {passes: true},
		"CLUSTERDOWN The cluster is down and only accepts read commands":                               {passes: true},
		"ERR Script attempted to access a non local key in a cluster node":                             {passes: true},
		"Lua script attempted to access a non local key in a cluster node":                             {passes: true},
		"ERR Attempted to access a non local key in a cluster node":                                    {passes: true}, // Valkey 9
		"ERR Unable to execute command 'exists' in script because undeclared keys were accessed during rehashing of the slot": {passes: true}, // Redis 8
		"READONLY You can't write against a read only replica.":                                                               {passes: true},
		"READONLY You can't write against a read only slave.":                                                                 {passes: true},
		"REDIRECT 10.0.0.7:6379": {passes: true},

		// Final replies.
		"WRONGTYPE Operation against a key holding the wrong kind of value":      {rejects: true},
		"NOPERM this user has no permissions to run the 'evalsha' command":       {rejects: true},
		"ERR The user executing the script can't run this command or subcommand": {rejects: true},
		"NOAUTH Authentication required.":                                        {rejects: true},
		"WRONGPASS invalid username-password pair or user is disabled.":          {rejects: true},
		"ERR invalid password": {rejects: true},
		"DENIED Redis is running in protected mode because protected mode is enabled":      {rejects: true},
		"NOPROTO unsupported protocol version":                                             {rejects: true},
		"OOM command not allowed when used memory > 'maxmemory'.":                          {rejects: true},
		"ERR unknown command 'evalsha', with args beginning with: 'aa' '1' 'order:42' ":    {rejects: true},
		"ERR Unknown Redis command called from script":                                     {rejects: true},
		"CROSSSLOT Keys in request don't hash to the same slot":                            {rejects: true},
		"BUSYKEY Target key name already exists.":                                          {rejects: true},
		"UNKILLABLE Sorry the script already executed write commands":                      {rejects: true},
		"ERR illegal address: 172.16.0.1:39136":                                            {rejects: true},
		"ERR max daily request limit exceeded. Limit: 10000, Usage: 10000.":                {rejects: true},
		"ERR DB index is out of range":                                                     {rejects: true},
		"NOSCRIPT No matching script. Please use EVAL.":                                    {rejects: true},
		"MOVED 3999 10.0.0.7:6381":                                                         {rejects: true}, // outside a Cluster
		"ERR value is not an integer or out of range":                                      {rejects: true},
		"ERR a text that only mentions LOADING and READONLY and -READONLY You can't write": {rejects: true},

		// Replies of a proxy that does not know the fate of the command.
		"upstream failure":                        {unanswered: true},
		"upstream protocol error":                 {unanswered: true},
		"ERR handle response, backend conn reset": {unanswered: true},
		"ERR Connection timed out":                {unanswered: true},
		"ERR Connection refused":                  {unanswered: true},
		"ERR Host is down":                        {unanswered: true},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			dialed := errors.New("dial tcp: connection refused")
			const digest = "41969ff2670752e60c30ec3401e1e16ca1d1c6f6"
			inRedis7 := text + " script: " + digest + ", on @user_script:1."
			inRedis6 := "ERR Error running script (call to f_" + digest + "): @user_script:1: @user_script: 1: -" + text
			for _, reply := range []redis.Error{errorReply(text), errorReply(inRedis7), errorReply(inRedis6)} {
				for how, err := range map[string]error{
					"bare":      reply,
					"wrapped":   fmt.Errorf("core: redis unavailable: %w", reply),
					"joined":    errors.Join(errPending, fmt.Errorf("lock %q: %w", "k", reply)),
					"explained": &explainedError{fmt.Errorf("lock: %w", reply), ": ", dialed},
				} {
					if Passes(err) != want.passes || Rejects(err) != want.rejects || Answer(err) == want.unanswered || Transient(err) == want.rejects {
						t.Errorf("%s: passes %t, rejects %t, answer %t, transient %t: %v", how, Passes(err), Rejects(err), Answer(err), Transient(err), err)
					}
				}
			}
			silent := AfterEarlier(&interruptedError{errNoAnswer}, errorReply(text))
			if FateOf(silent) != Unknown || Passes(silent) || Rejects(silent) {
				t.Errorf("a reply that only explains another error counts as the answer: %v", silent)
			}
		})
	}
}

// The reply to WAIT says nothing about the script before it, which was executed.
func TestMeaningOf_Shortfall(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("acquire: %w", &ShortfallError{Wanted: 1, Cause: errorReply("UNBLOCKED force unblock from blocking operation")})
	if Transient(err) || Passes(err) || !Answer(err) || MeaningOf(err) != MeansFinal {
		t.Errorf("transient: %t, passes: %t, an answer: %t, meaning %d", Transient(err), Passes(err), Answer(err), MeaningOf(err))
	}
}
