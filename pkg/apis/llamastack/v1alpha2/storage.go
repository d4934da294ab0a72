package v1alpha2

// StateStorage is where the server keeps its state. A half that is left out stays as
// the distribution has it.
type StateStorage struct {
	// KV is the key-value store.
	// +optional
	KV *KVStorage `json:"kv,omitempty"`
	// SQL is the relational store.
	// +optional
	SQL *SQLStorage `json:"sql,omitempty"`
}

// KVType is a kind of key-value store.
//
// +kubebuilder:validation:Enum=sqlite;redis
type KVType string

// SQLType is a kind of relational store.
//
// +kubebuilder:validation:Enum=sqlite;postgres
type SQLType string

// Kinds of stores.
const (
	KVSQLite    KVType  = "sqlite"
	KVRedis     KVType  = "redis"
	SQLSQLite   SQLType = "sqlite"
	SQLPostgres SQLType = "postgres"
)

// KVStorage is the key-value store.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.type) && self.type == 'redis') || has(self.endpoint)",message="storage.kv.type redis needs storage.kv.endpoint: set it, such as redis://redis.default.svc:6379"
// +kubebuilder:validation:XValidation:rule="!has(self.endpoint) || (has(self.type) && self.type == 'redis')",message="storage.kv.endpoint is only for storage.kv.type redis: remove it, or set the type"
// +kubebuilder:validation:XValidation:rule="!has(self.password) || (has(self.type) && self.type == 'redis')",message="storage.kv.password is only for storage.kv.type redis: remove it, or set the type"
type KVStorage struct {
	// Type is sqlite, a file in the server's volume, or redis.
	// +optional
	// +kubebuilder:default=sqlite
	Type KVType `json:"type,omitempty"`
	// Endpoint is the address of Redis, such as redis://redis.default.svc:6379.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Endpoint string `json:"endpoint,omitempty"`
	// Password is the entry of a Secret with the password of Redis.
	// +optional
	Password *SecretKeyRef `json:"password,omitempty"`
}

// SQLStorage is the relational store.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.type) && self.type == 'postgres') || has(self.connectionString)",message="storage.sql.type postgres needs storage.sql.connectionString: name the Secret that has it"
// +kubebuilder:validation:XValidation:rule="!has(self.connectionString) || (has(self.type) && self.type == 'postgres')",message="storage.sql.connectionString is only for storage.sql.type postgres: remove it, or set the type"
type SQLStorage struct {
	// Type is sqlite, a file in the server's volume, or postgres.
	// +optional
	// +kubebuilder:default=sqlite
	Type SQLType `json:"type,omitempty"`
	// ConnectionString is the entry of a Secret with the connection string of
	// PostgreSQL, such as postgresql://user:password@host:5432/database.
	// +optional
	ConnectionString *SecretKeyRef `json:"connectionString,omitempty"`
}

// SecretKeyRef is an entry of a Secret in the object's namespace, written as
// {name, key} or as {secretKeyRef: {name, key}}.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) ? !has(self.name) && !has(self.key) : has(self.name) && has(self.key)",message="a reference to a Secret is either {name, key} or {secretKeyRef: {name, key}}"
type SecretKeyRef struct {
	// Name is the name of the Secret.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name,omitempty"`
	// Key is the entry of the Secret.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Key string `json:"key,omitempty"`
	// SecretKeyRef is another way to write name and key.
	// +optional
	SecretKeyRef *SecretKeySelector `json:"secretKeyRef,omitempty"`
}

// SecretKeySelector is an entry of a Secret.
type SecretKeySelector struct {
	// Name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Key is the entry of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	Key string `json:"key"`
}

// Selector is the entry in either form.
func (r SecretKeyRef) Selector() SecretKeySelector {
	if r.SecretKeyRef != nil {
		return *r.SecretKeyRef
	}
	return SecretKeySelector{Name: r.Name, Key: r.Key}
}
