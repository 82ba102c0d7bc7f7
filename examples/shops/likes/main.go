// Likes toggles a like: a user taps the heart of a post, again and again.
//
//	go -C examples run ./shops/likes
//
// "Has liked? then take it back, else like" is right only once at a time for one
// user and one post. So the key is user:like:<user>:<post>; other users of the same
// post do not wait. The counter of the post is for all users, and no lock of one user
// keeps it right: it is added to in one step, as UPDATE … SET likes = likes + 1 does.
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
	taps  = 15 // of each user, at once; odd, so that all of them like it in the end
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
	p.Checkf(l.counter("cats") != l.fans("cats"), "the counter says %d, and %d users like it", l.counter("cats"), l.fans("cats"))

	p.Titlef("with the lock")
	answers := tap("/posts/dogs/like")
	p.Checkf(answers[http.StatusNoContent] == users*taps, "answers %v", answers)
	p.Checkf(l.counter("dogs") == users && l.fans("dogs") == users, "the counter says %d, and %d users like it", l.counter("dogs"), l.fans("dogs"))

	p.Titlef("ids with a colon in them: user a:b and post c, user a and post b:c")
	proof.Post(ctx, instances[0], "/users/a:b/posts/c/like", "")
	proof.Post(ctx, instances[1], "/users/a/posts/b:c/like", "")
	one, two := l.keyOf("a:b", "c"), l.keyOf("a", "b:c")
	p.Checkf(one != "" && two != "" && one != two, "two locks: %s and %s", strings.TrimPrefix(one, p.Prefix()), strings.TrimPrefix(two, p.Prefix()))
	p.Sayf("Joined as text, both would be user:like:a:b:c.")
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
