// Likes toggles a like: a user taps the heart of a post several times.
//
//	go -C examples run ./shops/likes
//
// Reading the like and then writing the opposite is correct only if one request at a time does so
// for the same user and post. So the key is user:like:<user>:<post>, and other users of the same
// post do not wait. The counter of the post belongs to all users, and the lock of one user does
// not protect it: the program increments it atomically, like UPDATE … SET likes = likes + 1.
package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
	"github.com/interlock-go/interlock/ginlock"
)

const (
	users = 10
	taps  = 15 // of each user at once; an odd number, so all users like the post at the end
)

func main() { proof.Main("likes", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	gin.SetMode(gin.ReleaseMode)
	l := newLikes()
	var instances []*gin.Engine
	for range 2 {
		locks, err := p.Locks(ctx)
		if err != nil {
			return err
		}
		service, err := routes(locks, l)
		if err != nil {
			return err
		}
		instances = append(instances, service)
	}
	tap := func(suffix string) map[int]int {
		return proof.Tally(users*taps, func(i int) int {
			return proof.Post(ctx, instances[i%2], "/users/u"+strconv.Itoa(i/taps)+suffix, "")
		})
	}

	p.Titlef("%d users tap one heart %d times each, in two instances, without the lock", users, taps)
	tap("/posts/cats/unguarded")
	p.Checkf(l.counter("cats") != l.fans("cats"), "the counter is %d, and %d users like it", l.counter("cats"), l.fans("cats"))

	p.Titlef("with the lock")
	answers := tap("/posts/dogs/like")
	p.Checkf(answers[http.StatusNoContent] == users*taps, "answers %v", answers)
	p.Checkf(l.counter("dogs") == users && l.fans("dogs") == users, "the counter is %d, and %d users like it", l.counter("dogs"), l.fans("dogs"))

	p.Titlef("ids with a colon in them: user a:b and post c, user a and post b:c")
	proof.Post(ctx, instances[0], "/users/a:b/posts/c/like", "")
	proof.Post(ctx, instances[1], "/users/a/posts/b:c/like", "")
	one, two := l.keyOf("a:b", "c"), l.keyOf("a", "b:c")
	p.Checkf(one != "" && two != "" && one != two, "two locks: %s and %s", strings.TrimPrefix(one, p.Prefix()), strings.TrimPrefix(two, p.Prefix()))
	p.Sayf("Joined without encoding, both would be user:like:a:b:c.")
	return nil
}

func routes(locks *core.Client, l *likes) (*gin.Engine, error) {
	guard, err := ginlock.New(locks)
	if err != nil {
		return nil, err
	}
	r := gin.New()
	r.POST("/users/:user/posts/:post/unguarded", l.toggle)
	return r, errors.Join(
		guard.Handle(r, http.MethodPost, "/users/:user/posts/:post/like", ruleset.Rule{
			Key:      "user:like:#{path.user}:#{path.post}",
			WaitTime: 10 * time.Second,
		}, l.noteKey, l.toggle),
		guard.Check(r))
}
