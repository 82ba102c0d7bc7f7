package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
)

// StatusHeader tells a client that the answer is not that of the handler under its
// lock: [StatusSkipped], [StatusNull] or [StatusUnlocked].
const StatusHeader = httpcall.StatusHeader

// The values of [StatusHeader].
const (
	StatusSkipped  = httpcall.StatusSkipped  // the handler did not run, by strategy skip
	StatusNull     = httpcall.StatusNull     // the handler did not run, by strategy null_response
	StatusUnlocked = httpcall.StatusUnlocked // the handler ran without the lock, by strategy proceed
)

// TokenHeader has the fencing token of the lock, as a decimal number: see
// [WithTokenHeader].
const TokenHeader = httpcall.TokenHeader

// WriteProblem is the default of [WithErrorWriter]: it answers with an RFC 9457
// problem document; see [httpcall.WriteProblem].
func WriteProblem(c *gin.Context, refusal *aspect.RefusedError) {
	httpcall.WriteProblem(c.Writer, refusal)
}
