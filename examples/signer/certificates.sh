#!/usr/bin/env bash
# Makes an authority and two certificates, for a signer and for the App that asks it:
# ca.crt, signer.crt, signer.key, app.crt, app.key. ca.key signs more; keep it offline.
#
#   examples/signer/certificates.sh DIRECTORY HOST   # the host name or IP of the signer
set -euo pipefail
umask 077
[ $# = 2 ] || { echo "certificates.sh: give a directory and the signer's host" >&2; exit 1; }
cd "$1"
[ ! -e ca.key ] || { echo "certificates.sh: $1 has an authority already" >&2; exit 1; }
case $2 in *[!0-9.]*) name=DNS:$2 ;; *) name=IP:$2 ;; esac

key() { openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key"; }
# certificate NAME EXTENSION…: one that the authority signs, for a year
certificate() {
	local file=$1
	shift
	key "$file"
	openssl req -new -key "$file.key" -subj "/CN=$file" |
		openssl x509 -req -CA ca.crt -CAkey ca.key -days 365 -out "$file.crt" -extfile <(printf '%s\n' "$@") 2>/dev/null
}

key ca
openssl req -x509 -new -key ca.key -subj '/CN=cryptopay signer authority' -days 3650 -out ca.crt \
	-addext 'basicConstraints=critical,CA:true,pathlen:0' -addext 'keyUsage=critical,keyCertSign'
certificate signer "subjectAltName=$name" 'extendedKeyUsage=serverAuth' 'keyUsage=digitalSignature'
certificate app 'extendedKeyUsage=clientAuth' 'keyUsage=digitalSignature'
