package configuration

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// Where the server's default backends are among the backends, and their files.
const (
	kvBackend  = "kv_default"
	sqlBackend = "sql_default"
	kvFile     = "${env.SQLITE_STORE_DIR:=~/.llama}/kvstore.db"
	sqlFile    = "${env.SQLITE_STORE_DIR:=~/.llama}/sqlstore.db"
)

// setStorage replaces the backends that the object declares, whole, so that nothing of
// the base's is left in them.
func (c document) setStorage(s *v1alpha2.StateStorage, o Options) error {
	if s == nil || s.KV == nil && s.SQL == nil {
		return nil
	}
	storage, _ := c["storage"].(map[string]any)
	backends, ok := storage["backends"].(map[string]any)
	if !ok {
		return failed(ReasonFailed, "spec.storage: the configuration of the distribution has no storage.backends to replace: use a distribution of Llama Stack 0.3 or later")
	}
	if s.KV != nil {
		backend, err := kvOf(s.KV, o)
		if err != nil {
			return failed(ReasonFailed, "spec.storage.kv.endpoint: %w", err)
		}
		backends[kvBackend] = backend
	}
	if s.SQL != nil {
		backends[sqlBackend] = sqlOf(s.SQL)
	}
	return nil
}

func kvOf(kv *v1alpha2.KVStorage, o Options) (map[string]any, error) {
	if kv.Type != v1alpha2.KVRedis {
		return map[string]any{"type": "kv_sqlite", "db_path": kvFile}, nil
	}
	host, port, err := Redis(kv.Endpoint)
	if err != nil {
		return nil, err
	}
	backend := map[string]any{"type": "kv_redis", "host": host, "port": port}
	if kv.Password != nil {
		backend["password"] = placeholder(redisPassword)
		if o.RedisPasswordInHost {
			backend["host"] = ":" + placeholder(redisPassword) + "@" + host
		}
	}
	return backend, nil
}

// Redis takes an address of Redis apart, such as redis://redis.default.svc:6379. The
// server connects with host and port alone, so an address that says more is an error.
func Redis(endpoint string) (host string, port int, err error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "redis://" + endpoint
	}
	const example = ": write it as redis://host:port"
	address, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "", 0, errors.New("it is no URL" + example)
	case address.User != nil:
		return "", 0, errors.New("it has a user or a password, which would be readable in the configuration: write it as redis://host:port, and name the Secret in storage.kv.password")
	case address.Scheme != "redis":
		return "", 0, errors.New("the server knows only the scheme redis, without TLS" + example)
	case address.Hostname() == "":
		return "", 0, errors.New("it has no host" + example)
	case strings.Trim(address.Path, "/") != "" && address.Path != "/0", address.RawQuery != "":
		return "", 0, errors.New("the server uses database 0 and takes no options" + example)
	}
	if address.Port() == "" {
		return address.Hostname(), 6379, nil
	}
	if port, err = strconv.Atoi(address.Port()); err != nil || port < 1 || port > 65535 {
		return "", 0, errors.New("the port is not between 1 and 65535" + example)
	}
	return address.Hostname(), port, nil
}

func sqlOf(sql *v1alpha2.SQLStorage) map[string]any {
	if sql.Type != v1alpha2.SQLPostgres {
		return map[string]any{"type": "sql_sqlite", "db_path": sqlFile}
	}
	backend := map[string]any{"type": "sql_postgres", "connection_string": placeholder(connectionString)}
	for _, part := range PostgresParts {
		backend[part] = placeholder(postgresVariable(part))
	}
	return backend
}

// PostgresParts are the entries of the Secret that the operator keeps of a connection
// string, because the server takes no connection string.
var PostgresParts = []string{"host", "port", "db", "user", "password"}

// Postgres takes a connection string apart, in either of the forms that PostgreSQL
// itself takes: postgresql://user:password@host:port/db, or host=... user=... . Errors
// never show any of it.
func Postgres(text string) (map[string]string, error) {
	text = strings.TrimSpace(text)
	var parts map[string]string
	var err error
	if strings.Contains(text, "://") {
		parts, err = postgresURL(text)
	} else {
		parts, err = postgresWords(text)
	}
	if err != nil {
		return nil, err
	}
	for part, value := range map[string]string{"host": "localhost", "port": "5432"} {
		if parts[part] == "" {
			parts[part] = value
		}
	}
	if parts["user"] == "" {
		return nil, errors.New("the connection string has no user: write it as postgresql://user:password@host:5432/database")
	}
	if parts["db"] == "" {
		parts["db"] = parts["user"]
	}
	if number, err := strconv.Atoi(parts["port"]); err != nil || number < 1 || number > 65535 {
		return nil, errors.New("the port of the connection string is not between 1 and 65535")
	}
	return parts, nil
}

func postgresURL(text string) (map[string]string, error) {
	address, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the connection string is no URL: write it as postgresql://user:password@host:5432/database, with special characters as %XX")
	}
	// SQLAlchemy writes the driver behind the scheme.
	scheme, _, _ := strings.Cut(address.Scheme, "+")
	if scheme != "postgresql" && scheme != "postgres" {
		return nil, errors.New("the connection string has another scheme than postgresql")
	}
	if _, _, err := net.SplitHostPort(address.Host); err != nil && strings.Contains(address.Host, ",") {
		return nil, errors.New("the connection string has several hosts: the server takes one")
	}
	password, _ := address.User.Password()
	return map[string]string{
		"host": address.Hostname(), "port": address.Port(), "db": strings.Trim(address.Path, "/"),
		"user": address.User.Username(), "password": password,
	}, nil
}

// postgresWords reads key=value pairs with blanks between them. A value with blanks is in
// single quotes, in which a backslash takes the next character as it is.
func postgresWords(text string) (map[string]string, error) {
	parts := map[string]string{}
	wrong := errors.New("the connection string is neither a URL nor a list of key=value: write it as postgresql://user:password@host:5432/database")
	for text != "" {
		key, rest, ok := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" || strings.ContainsAny(key, " \t\n") {
			return nil, wrong
		}
		value, rest, ok := postgresValue(strings.TrimLeft(rest, " \t\n"))
		if !ok {
			return nil, wrong
		}
		if key == "dbname" {
			key = "db"
		}
		parts[key] = value
		text = strings.TrimLeft(rest, " \t\n")
	}
	for key := range parts {
		switch key {
		case "host", "port", "db", "user", "password":
		default:
			delete(parts, key)
		}
	}
	return parts, nil
}

// postgresValue is the first value of the text, and what comes after it.
func postgresValue(text string) (value, rest string, ok bool) {
	quoted := strings.HasPrefix(text, "'")
	if quoted {
		text = text[1:]
	}
	var read strings.Builder
	for i := 0; i < len(text); i++ {
		switch at := text[i]; {
		case at == '\\' && i+1 < len(text):
			i++
			read.WriteByte(text[i])
		case quoted && at == '\'':
			return read.String(), text[i+1:], true
		case !quoted && strings.ContainsRune(" \t\n", rune(at)):
			return read.String(), text[i:], true
		default:
			read.WriteByte(at)
		}
	}
	return read.String(), "", !quoted
}
