/* SPDX-License-Identifier: Apache-2.0 */
#include "common/baseline.h"

#include <string.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"

/* clang-format off */
#define RO(path_text) { path_text, ACCESS_READ_ONLY }
#define RW(path_text) { path_text, ACCESS_READ_WRITE }
#define NO(path_text) { path_text, ACCESS_DENY }

static const struct baseline_entry shared_entries[] = {
	/* shells and git */
	RO("~/.zshenv"),
	RO("~/.zprofile"),
	RO("~/.zshrc"),
	RO("~/.profile"),
	RO("~/.bashrc"),
	RO("~/.bash_profile"),
	RO("~/.gitconfig"),
	RO("~/.config/git"),
	RO("~/.gitignore_global"),
	RO("~/.gitattributes"),
	/* toolchains and package managers */
	RO("~/.fnm"),
	RO("~/.nvm"),
	RO("~/.volta"),
	RO("~/.npm-global"),
	RO("~/.nodenv"),
	RO("~/.yarn"),
	RO("~/.pnpm"),
	RO("~/.bun"),
	RO("~/.deno"),
	RO("~/.pyenv"),
	RO("~/Library/Python"),
	RO("~/.local/lib"),
	RO("~/.pipx"),
	RO("~/.rbenv"),
	RO("~/.rvm"),
	RO("~/.gem"),
	RO("~/perl5"),
	RO("~/.cpanm"),
	RO("~/.cpan"),
	RO("~/.cargo"),
	RO("~/.rustup"),
	RO("~/go"),
	RO("~/.gvm"),
	RO("~/.goenv"),
	RO("~/.sdkman"),
	RO("~/.jenv"),
	RO("~/.m2"),
	RO("~/.gradle"),
	RO("~/.asdf"),
	RO("~/.mise"),
	RO("~/.plenv"),
	RO("~/.opam"),
	RO("~/.ghcup"),
	RO("~/.stack"),
	RO("~/.nimble"),
	RO("~/.pub-cache"),
	RO("~/.local/share"),
	RO("~/.local/bin"),
	/* secrets inside the trees above */
	NO("~/.cargo/credentials"),
	NO("~/.cargo/credentials.toml"),
	NO("~/.gem/credentials"),
	NO("~/.m2/settings.xml"),
	NO("~/.m2/settings-security.xml"),
	NO("~/.gradle/gradle.properties"),
	/* caches and state */
	RW("~/.cache"),
	RW("~/.npm"),
	RW("~/.local/state"),
	/* programs and hooks of botmux */
	RO("~/.botmux/bin"),
	RO("~/.botmux/claude-plugin"),
	/* keys, logins, tokens */
	NO("~/.ssh"),
	NO("~/.aws"),
	NO("~/.azure"),
	NO("~/.gnupg"),
	NO("~/.netrc"),
	NO("~/.config/gh"),
	NO("~/.config/glab-cli"),
	NO("~/.config/gcloud"),
	NO("~/.config/op"),
	NO("~/.config/1Password"),
	NO("~/.1password"),
	NO("~/.password-store"),
	NO("~/.git-credentials"),
	NO("~/.npmrc"),
	NO("~/.pypirc"),
	NO("~/.docker/config.json"),
	NO("~/.kube"),
	NO("~/.lark-cli"),
};

static const struct baseline_entry linux_entries[] = {
	RO("/usr"),
	RO("/etc"),
	RO("/opt"),
	RW("~/.cache"),
	RW("~/.npm"),
};

static const struct baseline_entry darwin_entries[] = {
	RO("/System"),
	RO("/usr"),
	RO("/bin"),
	RO("/sbin"),
	RO("/Library"),
	RO("/opt"),
	RO("/private/etc"),
	RO("/private/var/select"),
	RO("/private/var/db/timezone"),
	RO("/private/var/run"),
	NO("/Library/Keychains"),
	RW("/dev"),
	RW("/private/tmp"),
	RW("/private/var/tmp"),
	RW("/private/var/folders"),
	RO("~/Library"),
	RW("~/Library/Caches"),
	RW("~/Library/Application Support"),
	RW("~/Library/Logs"),
	NO("~/Library/Keychains"),
	NO("~/Library/Application Support/lark-cli"),
};
/* clang-format on */

static const char *const platform_names[] = {
	[PLATFORM_LINUX] = "linux",
	[PLATFORM_DARWIN] = "darwin",
};

const char *platform_name(enum platform platform)
{
	return (size_t)platform < ARRAY_SIZE(platform_names) ? platform_names[platform] : "unknown";
}

bool platform_parse(const char *name, enum platform *ret_platform)
{
	for (size_t i = 0; i < ARRAY_SIZE(platform_names); i++) {
		if (strcmp(platform_names[i], name) == 0) {
			*ret_platform = (enum platform)i;
			return true;
		}
	}
	return false;
}

const struct baseline_entry *baseline_entry(enum platform platform, size_t index)
{
	if (index < ARRAY_SIZE(shared_entries))
		return &shared_entries[index];
	index -= ARRAY_SIZE(shared_entries);

	switch (platform) {
	case PLATFORM_LINUX:
		return index < ARRAY_SIZE(linux_entries) ? &linux_entries[index] : NULL;
	case PLATFORM_DARWIN:
		return index < ARRAY_SIZE(darwin_entries) ? &darwin_entries[index] : NULL;
	}
	return NULL;
}

int baseline_path(const struct baseline_entry *entry, const char *home_dir, struct buf *out)
{
	const char *path = entry->path;

	buf_clear(out);
	if (path[0] == '~') {
		(void)buf_add_string(out, home_dir);
		path++;
	}
	(void)buf_add_string(out, path);
	return out->failed ? -ERR_NOMEM : 0;
}

int baseline_add_rules(struct rule_list *list, enum platform platform, const char *home_dir,
		       struct error *err)
{
	AUTO(buf_deinit) struct buf path = BUF_INIT(LIMIT_FRAME_BYTES);
	const struct baseline_entry *entry = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && (entry = baseline_entry(platform, i)); i++) {
		if (baseline_path(entry, home_dir, &path) < 0)
			return buf_check(&path, "a path of the baseline", err);
		r = rule_list_append(list, buf_text(&path), entry->access, RULE_BASELINE,
				     "baseline", err);
	}
	return r;
}
