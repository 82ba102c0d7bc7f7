package main

import (
	"context"
	"os"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	gin.SetMode(gin.ReleaseMode) // the commands use its router only
	logging.Disable()            // the errors of the commands contain what go-redis would log about an unavailable Redis
	os.Exit(commands().run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// commands returns the commands, in the order of the help.
func commands() commandLine {
	return commandLine{newCheck(), newDump(), newKey(), newHash(), newWire(), newDoctor(), newLs(), newWho(), newRelease(), newSchema(), newProto(), newVersion()}
}
