package keyring

import (
	"context"
	"strings"
)

// secretTool is the Secret Service, through libsecret's secret-tool.
type secretTool struct{ program }

// Get implements Ring. secret-tool ends with 1 and says nothing where there is no such secret.
func (t secretTool) Get(ctx context.Context, account string) (string, error) {
	a, err := t.run(ctx, "", "lookup", "service", service, "account", account)
	switch {
	case err != nil:
		return "", err
	case a.code == 0:
		return strings.TrimSuffix(a.out, "\n"), nil
	case strings.TrimSpace(a.err) == "":
		return "", ErrNotFound
	}
	return "", a.refused("read from the keyring", a.out)
}

// Set implements Ring.
func (t secretTool) Set(ctx context.Context, account, secret string) error {
	a, err := t.run(ctx, secret, "store", "--label=rind: "+account, "service", service, "account", account)
	if err == nil && a.code != 0 {
		err = a.refused("write to the keyring", secret)
	}
	return err
}

// Delete implements Ring. clear does not say whether there was anything.
func (t secretTool) Delete(ctx context.Context, account string) (bool, error) {
	if _, err := t.Get(ctx, account); err != nil {
		return false, ignoring(err)
	}
	a, err := t.run(ctx, "", "clear", "service", service, "account", account)
	if err == nil && a.code != 0 {
		err = a.refused("delete from the keyring", "")
	}
	return err == nil, err
}
