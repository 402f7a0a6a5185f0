#!/usr/bin/env bash
# Certificates and keys for tests of etcd with TLS, by openssl.
#
#   tests/store/make_certificates.sh FOLDER
#
#   ca.pem                     signs all of these but other.pem
#   server.pem, .key           of 127.0.0.1 and localhost
#   elsewhere.pem, .key        of etcd.example alone
#   expired.pem, .key          of 127.0.0.1, from 2020
#   client.pem, .key           for clients; lapsed.pem, .key: from 2020
#   locked.key                 client.key with a passphrase
#   other.pem                  another authority
#   token.key, token.pub       for tokens (--auth-token jwt)
set -euo pipefail
mkdir -p "$1"
cd "$1"

authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
    -addext basicConstraints=critical,CA:true -keyout "$1.key" -out "$1.pem" 2>>openssl.log
}

# certificate NAME SUBJECT_ALT_NAME FROM TO [SUBJECT]
certificate() {
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "${5:-/CN=$1}" \
    -keyout "$1.key" -out "$1.csr" 2>>openssl.log
  # etcd is a client of itself, too: its gateway's.
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$2" >"$1.ext"
  openssl ca -batch -config ca.conf -extfile "$1.ext" -startdate "$3" -enddate "$4" -in "$1.csr" \
    -out "$1.pem" -notext 2>>openssl.log
}

authority ca
authority other
touch index.txt
cat >ca.conf <<'CONF'
[ca]
default_ca = own
[own]
new_certs_dir = .
database = index.txt
rand_serial = yes
unique_subject = no
certificate = ca.pem
private_key = ca.key
default_md = sha256
policy = any
[any]
commonName = optional
organizationName = optional
CONF
from=20200101000000Z
long=$(date -u -d '+2 days' +%Y%m%d%H%M%SZ)
certificate server IP:127.0.0.1,DNS:localhost "$from" "$long"
certificate elsewhere DNS:etcd.example "$from" "$long"
certificate expired IP:127.0.0.1 "$from" 20200102000000Z
# Users and the common name of a certificate do not go together over HTTP.
certificate client DNS:client.example "$from" "$long" /O=client
certificate lapsed DNS:client.example "$from" 20200102000000Z
openssl pkcs8 -topk8 -in client.key -out locked.key -passout pass:passphrase
openssl genrsa -out token.key 2048 2>>openssl.log
openssl rsa -in token.key -pubout -out token.pub 2>>openssl.log
