package main

import (
	"context"
	"net/url"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

// serve prints commands to try and keeps the service running until ctx is done.
func (d *demo) serve(ctx context.Context) {
	d.desk.setPace(5 * time.Second)
	d.out.titlef("The service is running; Ctrl-C ends it. Every handler takes 5 s. Run two of these commands in two terminals")
	for _, path := range []string{"/orders/1/pay", "/orders/1/pack", "/orders/1/remind?channel=mail", "/orders/1/invoice", "/admin/reindex", "/admin/login"} {
		d.out.linef("$ curl -i -X POST 'http://%s%s'", d.client.web, path)
	}
	for _, method := range []string{"Pay", "Follow"} {
		d.out.linef("$ grpcurl -plaintext -d '{\"order_id\": \"1\"}' %s declared.v1.Orders/%s", d.client.rpc, method)
	}
	d.out.linef("$ grpcurl -plaintext -d '{\"order_id\": \"1\", \"address\": {\"country\": \"NO\"}}' %s declared.v1.Orders/Ship", d.client.rpc)
	d.out.linef("$ redis-cli -u %s --scan --pattern '%s*'", withoutPassword(d.backend.url), d.backend.prefix)
	d.out.titlef("Edit the rules; this terminal shows the result")
	d.out.linef("%s", d.file.path)
	d.out.linef("$ go run github.com/interlock-go/interlock/core/cmd/interlock check %s", d.file.path)
	for old := d.service.Rules(); ; old = d.service.Rules() {
		select {
		case r := <-d.witness.reloads:
			d.showReload(old, r)
		case <-ctx.Done():
			return
		}
	}
}

func (d *demo) showReload(old *ruleset.Set, r ruleset.Reload) {
	if r.Err != nil {
		d.out.titlef("refused, the old rules stay in force:\n%v", r.Err)
		return
	}
	d.out.titlef("in force: %d rules, file %s", len(r.Set.Rules()), r.Hash)
	d.showChanges(old)
}

func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Redacted()
}
