package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
)

// WriteProblem is the default of [WithErrorWriter]: it answers with an RFC 9457
// problem document; see [httpcall.WriteProblem].
func WriteProblem(c *gin.Context, refusal *aspect.RefusedError) {
	httpcall.WriteProblem(c.Writer, refusal)
}
