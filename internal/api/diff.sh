#!/usr/bin/env bash
# Compares what the module exports with the last tag. A change that breaks a program of a
# host is reported; in a package that docs/upgrading.md calls stable it also has to stand in
# CHANGELOG.md, under "### Incompatible" of what is not released. Without a tag there is
# nothing to compare with.
#
#   internal/api/diff.sh APIDIFF
set -euo pipefail
cd "$(dirname "$0")/../.."
apidiff=$1 module=$(go list -m) tmp=$(mktemp -d)
tag=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)
if [ -z "$tag" ]; then
	echo "no version is tagged: the first one is what later commits are compared with"
	exit
fi
trap 'git worktree remove --force "$tmp/old" 2>/dev/null || true; rm -rf "$tmp"' EXIT
git worktree add --quiet --detach "$tmp/old" "$tag"
(cd "$tmp/old" && "$apidiff" -m -w "$tmp/old.api" "$module" 2>/dev/null)
"$apidiff" -m -incompatible "$tmp/old.api" "$module" 2>/dev/null >"$tmp/changes"
if [ ! -s "$tmp/changes" ]; then
	echo "nothing that $tag exports was broken"
	exit
fi
echo "incompatible with $tag:"
cat "$tmp/changes"
# "- ./payment.(*Service).Create: removed"; a name of the root has no path before it
stable=$(sed -n '/^## What stays/,/^## /p' docs/upgrading.md | grep -o '^- `[^`]*`' | tr -d '`' | sed 's/^- //')
broken=''
while read -r _ what; do
	path=${what#./}
	while read -r p; do
		case $path in
		"$p".[A-Z\(]*) broken+="$what"$'\n' ;;
		[A-Z\(]*) if [ "$p" = cryptopay ]; then broken+="$what"$'\n'; fi ;;
		esac
	done <<<"$stable"
done <"$tmp/changes"
[ -z "$broken" ] && exit
awk '/^## /{here=/Unreleased/} here && /^### Incompatible/{found=1} END{exit !found}' CHANGELOG.md || {
	echo "these packages are stable: say what a host has to change under '### Incompatible' in CHANGELOG.md:"
	printf '%s' "$broken"
	exit 1
}
