package lockz

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
)

// releaseTimeout is the time limit of a release by force.
const releaseTimeout = 5 * time.Second

// maxForm limits the size of a form, which is one ticket of a long key.
const maxForm = 1 << 20

// releases creates the buttons that release a lock by force and serves the requests of pressed
// buttons.
type releases struct {
	authorize   func(*http.Request) error // nil: no request may release a lock
	operator    func(*http.Request) string
	crossOrigin *http.CrossOriginProtection
	tickets     *tickets
	tracker     *tracker
	names       keyNames
	logger      *slog.Logger
}

func newReleases(t *tracker, cfg *config) (*releases, error) {
	sealed, err := newTickets()
	if err != nil {
		return nil, err
	}
	return &releases{
		authorize: cfg.authorize, operator: cfg.operator, crossOrigin: http.NewCrossOriginProtection(),
		tickets: sealed, tracker: t, names: cfg.names(), logger: cfg.logger,
	}, nil
}

// allows reports whether the request may release locks.
func (s *releases) allows(r *http.Request) bool {
	return s.authorize != nil && s.authorize(r) == nil
}

// cookieName is the cookie that proves that a button is pressed in the browser that showed it.
const cookieName = "interlock-locks"

// cookieOf returns the cookie of a browser, and sets one if the browser has no cookie. Other sites cannot
// make the browser send it, and buttons shown to another browser do not match it.
func cookieOf(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(cookieName); err == nil && c.Value != "" {
		return c.Value
	}
	value := rand.Text()
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: value, HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // the page may be served over plain HTTP
	return value
}

// isFromPage reports whether a button was pressed on this page and not on another site. A browser reports
// this in Sec-Fetch-Site or, over plain HTTP, in Origin. If a proxy rewrote Host, Origin cannot be compared
// with it. Then the browser must send the cookie that the ticket names.
func (s *releases) isFromPage(r *http.Request, t *ticket) bool {
	if s.crossOrigin.Check(r) == nil {
		return true
	}
	c, err := r.Cookie(cookieName)
	return err == nil && r.Header.Get("Sec-Fetch-Site") == "" && t.Cookie != "" && c.Value == t.Cookie
}

// button is the data of one button in a template.
type button struct {
	Ticket, View string
	Lock         lockRow
	Holders      []buttonHolder // the holders that lose the lock
}

type buttonHolder struct {
	Field, Rule string
	Held        float64 // 0: not known
}

// holdButtons returns a button for each row, or nil for a row whose client is not open.
func (s *releases) holdButtons(rows []holdRow, cookie string) []*button {
	list := make([]*button, len(rows))
	for i := range rows {
		h := &rows[i]
		if s.tracker.clients.find(clientID(h.field)) == nil {
			continue
		}
		b := button{View: "?release=1", Lock: h.lockRow, Holders: []buttonHolder{{h.Holder, h.Rule, h.Held}}}
		list[i] = s.seal(b, ticket{
			Client: clientID(h.field), Key: []byte(h.key), Fields: [][]byte{[]byte(h.field)}, Since: []time.Time{h.Since}, Cookie: cookie,
		})
	}
	return list
}

// fleetButtons returns a button for each lock whose holders are all shown, and otherwise nil, because a
// button takes the lock only from holders that the operator has seen.
func (s *releases) fleetButtons(list *fleetState, cookie string) []*button {
	buttons := make([]*button, len(list.Locks))
	for i := range list.Locks {
		l := &list.Locks[i]
		if l.HolderCount == 0 || l.HolderCount > fleetNames {
			continue
		}
		b := button{View: "?fleet=1&release=1", Lock: lockRow{Key: l.Key, KeyHash: l.KeyHash, Keys: 1}}
		t := ticket{Client: list.Client, Key: []byte(l.key), Cookie: cookie}
		for _, h := range l.Holders {
			b.Holders = append(b.Holders, buttonHolder{h.Field, "", h.Held})
			t.Fields, t.Since = append(t.Fields, []byte(h.field)), append(t.Since, h.since)
		}
		buttons[i] = s.seal(b, t)
	}
	return buttons
}

// seal adds the ticket to a button. It returns nil if the ticket cannot be sealed.
func (s *releases) seal(b button, t ticket) *button {
	t.Made = time.Now()
	var err error
	if b.Ticket, err = s.tickets.issue(t); err != nil {
		return nil
	}
	return &b
}

// The results of a pressed button, as the query of the next page names them.
const (
	noticeReleased = "released"
	noticeOthers   = "others"
	noticeFree     = "free"
)

// noticeOf returns the sentence for a result. It returns "" for other words, because any client can
// write the query.
func noticeOf(word string) string {
	switch word {
	case noticeReleased:
		return "The lock was released. A holder in another process may continue without it: it finds out at its next renewal or, if its lease is fixed, when it releases the lock."
	case noticeOthers:
		return "The lock was taken from the holders that were shown. Other holders still have it."
	case noticeFree:
		return "The lock was already free."
	default:
		return ""
	}
}

// release takes a lock from the holders of a ticket, if the request is allowed to and comes from this page.
// It returns a notice for the page, or a message if nothing is known to be released.
func (s *releases) release(w http.ResponseWriter, r *http.Request) (notice string, _ *message) {
	if !s.allows(r) {
		return "", &message{"Not allowed", http.StatusForbidden, "You may not release locks here."}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	t, valid := s.tickets.open(r.PostFormValue("ticket"), time.Now())
	if !s.isFromPage(r, &t) {
		return "", &message{"Not from this page", http.StatusForbidden, "Only the buttons of this page release locks; other sites cannot. Load the page again and allow its cookie."}
	}
	client := s.tracker.clients.find(t.Client)
	if !valid || client == nil {
		return "", &message{"Nothing was released", http.StatusConflict, "This button is too old, or belongs to another process. Load the page again."}
	}
	operator := printable(s.operator(r), maxName) // before the release, because the function may panic
	ctx, cancel := context.WithTimeout(r.Context(), releaseTimeout)
	defer cancel()
	before, err := s.evict(ctx, client, &t)
	if len(before.Holders) == 0 && (err == nil || errors.Is(err, core.ErrNotHeld)) {
		return noticeFree, nil
	}
	s.record(r, operator, string(t.Key), &before, err)
	switch {
	case errors.Is(err, core.ErrNotHeld):
		return "", &message{"Nothing was released", http.StatusConflict, "Another holder has the lock now. Load the page again."}
	case errors.Is(err, core.ErrInvalid):
		return "", &message{"Nothing was released", http.StatusConflict, "The key is not a held lock, or not any more."}
	case err != nil:
		return "", &message{"Not known whether it was released", http.StatusBadGateway, "Redis did not confirm the release. Load the page again to see whether the lock is still held."}
	case before.HolderCount > len(before.Holders):
		return noticeOthers, nil
	default:
		return noticeReleased, nil
	}
}

// evict takes the lock from the holders of a ticket that still have it. A hold of this process may have passed
// the lock on since the page was shown. The next hold has the same field and keeps the lock.
func (s *releases) evict(ctx context.Context, client *core.Client, t *ticket) (core.LockEntry, error) {
	var fields []string
	for i, f := range t.Fields {
		if h := s.tracker.table.ofField(string(t.Key), string(f)); h == nil || h.acquired.Equal(t.Since[i]) {
			fields = append(fields, string(f))
		}
	}
	if len(fields) == 0 {
		e, err := client.Inspect(ctx, string(t.Key))
		return e, cmp.Or(err, core.ErrNotHeld)
	}
	return client.Evict(ctx, string(t.Key), fields...)
}

// record keeps a release as an incident and logs the operator and the holders that lost the lock. For a
// failed release it logs the holders that still have the lock.
func (s *releases) record(r *http.Request, operator, key string, before *core.LockEntry, err error) {
	var fields []string
	for _, h := range before.Holders {
		fields = append(fields, printable(h.Field, maxName))
	}
	holders := strings.Join(fields, " ")
	attrs := []slog.Attr{
		slog.String("operator", operator),
		s.names.attr("key", "key_hash", key), slog.String("kind", string(before.Kind)),
	}
	if err != nil {
		attrs = append(attrs, slog.String("held_by", holders), slog.String("error", core.ErrorText(err)))
		s.logger.LogAttrs(r.Context(), slog.LevelError, "lock not released by force", attrs...)
		return
	}
	field := before.Holders[0].Field
	s.tracker.incidents.add(whatReleased, event{
		at: time.Now(), what: whatReleased, rule: rule{s.ruleOf(key, field), before.Kind}, key: key,
		holder: field, trace: traceOf(r.Context()),
	})
	s.logger.LogAttrs(r.Context(), slog.LevelWarn, "lock released by force", append(attrs, slog.String("lost_by", holders))...)
}

// ruleOf returns the rule of a hold of this process, or ruleNone for a hold of another process.
func (s *releases) ruleOf(key, field string) string {
	if h := s.tracker.table.ofField(key, field); h != nil {
		return h.rule.name
	}
	return ruleNone
}

// ticketLasts is the time during which a button of the page can be pressed.
const ticketLasts = 15 * time.Minute

// ticket identifies what a button releases: a key, from the holders that the operator has seen.
type ticket struct {
	Client string      `json:"c"` // id of the client that releases the lock
	Key    []byte      `json:"k"` // not a string, because JSON would change bytes that are not UTF-8
	Fields [][]byte    `json:"f"`
	Since  []time.Time `json:"h"` // acquisition times of the holders, in the order of Fields; zero: not known here
	Cookie string      `json:"s"` // the cookie of the browser that got the button
	Made   time.Time   `json:"t"`
}

// tickets encrypts and authenticates tickets. So a page that hides keys hides them in its buttons too, and
// a client that did not load the page cannot forge a ticket.
type tickets struct{ seal cipher.AEAD }

func newTickets() (*tickets, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // Read never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("cipher of tickets: %w", err)
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("cipher of tickets: %w", err)
	}
	return &tickets{seal}, nil
}

func (s *tickets) issue(t ticket) (string, error) {
	plain, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("ticket: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.seal.Seal(nil, nil, plain, nil)), nil //nolint:gosec // the cipher chooses the nonce
}

// open decrypts a ticket. valid is true if this process issued the ticket and the ticket is not
// too old.
func (s *tickets) open(sealed string, now time.Time) (t ticket, valid bool) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil {
		raw, err = s.seal.Open(nil, nil, raw, nil)
	}
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	return t, err == nil && now.Sub(t.Made) <= ticketLasts
}
