/* SPDX-License-Identifier: Apache-2.0 */
#include "common/generic_table.h"

#include "common/scope.h"

/* Names stand side by side, to be read as lists. */
/* clang-format off */
static const char *const system_paths[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix",
	"/gnu", "/snap", "/home/linuxbrew", "/var/lib/flatpak/runtime", "/var/lib/snapd/snap",
	"/var/lib/dpkg/status", "/var/lib/rpm", "/run/current-system", "/run/opengl-driver",
	"/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage",
};

static const char *const system_secrets[] = {
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
	"/etc/sudoers.d", "/etc/security/opasswd", "/etc/ssh/ssh_host_rsa_key",
	"/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_dsa_key",
	"/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/krb5.keytab",
	"/etc/wireguard", "/etc/openvpn", "/etc/ipsec.secrets", "/etc/ipsec.d",
	"/etc/ppp/chap-secrets", "/etc/ppp/pap-secrets", "/etc/NetworkManager/system-connections",
	"/etc/wpa_supplicant", "/etc/iwd", "/etc/docker/key.json", "/etc/kubernetes",
	"/etc/rancher", "/etc/vault.d", "/etc/consul.d", "/etc/credstore",
	"/etc/credstore.encrypted", "/etc/exim4/passwd.client", "/etc/postfix/sasl_passwd",
	"/etc/mysql/debian.cnf", "/etc/boto.cfg", "/etc/cryptsetup-keys.d",
};

static const char *const toolchains[] = {
	/* Settings that shells and git read. */
	".zshenv", ".zprofile", ".zshrc", ".zlogin", ".profile", ".bashrc", ".bash_profile",
	".bash_login", ".bash_aliases", ".inputrc", ".editorconfig", ".gitconfig", ".config/git",
	".gitignore", ".gitignore_global", ".gitattributes", ".gitmessage", ".config/fish",
	".config/starship.toml", ".dircolors", ".terminfo",
	/* JavaScript. */
	".fnm", ".nvm", ".volta", ".npm-global", ".nodenv", ".n", ".yarn", ".pnpm", ".bun", ".deno",
	".local/share/pnpm", ".local/share/fnm", ".local/share/corepack", ".config/yarn/global",
	/* Python. */
	".pyenv", "Library/Python", ".local/lib", ".pipx", ".local/pipx", ".local/share/pipx",
	".local/share/uv", ".local/share/virtualenvs", ".virtualenvs", ".poetry",
	".local/share/pypoetry", ".rye", ".pixi", "miniconda3", "miniforge3", "mambaforge",
	"anaconda3", "micromamba", ".conda", ".micromamba", ".hatch",
	".local/share/hatch",
	/* Ruby, Perl, Lua, PHP. */
	".rbenv", ".rvm", ".gem", ".local/share/gem", "perl5", ".cpanm", ".cpan", ".plenv",
	".perlbrew", ".luarocks", ".luaenv", ".phpenv", ".config/composer/vendor",
	".composer/vendor",
	/* Rust, Go, and managers of many tools. */
	".cargo", ".rustup", "go", "sdk", ".gvm", ".goenv", ".asdf", ".mise", ".local/share/mise",
	".config/mise", ".local/share/rtx", ".tool-versions", ".proto", ".local/share/devbox",
	".devenv",
	/* Java and its relatives. */
	".sdkman", ".jenv", ".m2", ".gradle", ".ivy2", ".sbt", ".coursier", ".local/share/coursier",
	".kotlin", ".jdks", ".local/share/JetBrains/Toolbox",
	/* Other languages, mobile, embedded. */
	".opam", ".ghcup", ".cabal", ".stack", ".nimble", ".choosenim", ".elan", ".pub-cache",
	"flutter", ".fvm", ".dart-tool", "Android/Sdk", ".android", ".swiftly",
	".local/share/swiftly", ".dotnet", ".nuget", ".templateengine", ".juliaup", ".julia", ".R",
	"R", ".rig", ".kerl", ".kiex", ".elixir-install", ".hex", ".mix", ".roswell", "quicklisp",
	".zvm", ".zig", ".zls", ".vlang", ".foundry", ".solana/install", ".platformio",
	".arduino15", "esp", ".espressif", "emsdk", ".emscripten",
	/* Operations, Nix, Guix. */
	".tfenv", ".tgenv", ".terraform.d", ".pulumi/bin", ".krew", ".arkade/bin",
	".local/share/helm/plugins", ".nix-profile", ".nix-defexpr", ".local/state/nix/profiles",
	".linuxbrew", ".guix-profile", ".config/guix/current", ".local/share/flatpak/runtime",
	/* What users install by hand, editors, terminals. */
	".local/bin", "bin", ".local/include", ".local/opt", ".local/share/man",
	".local/share/bash-completion", ".local/share/zsh/site-functions", ".local/share/fonts",
	".fonts", ".config/fontconfig", ".local/share/icons", ".local/share/mime", ".oh-my-zsh",
	".zinit", ".local/share/zinit", ".sheldon", ".local/share/sheldon", ".fzf", ".vim",
	".vimrc", ".config/nvim", ".local/share/nvim", ".tmux.conf", ".config/tmux", ".config/pip",
	".config/uv", ".config/pypoetry", ".config/bat", ".config/ripgrep", ".ripgreprc",
};

static const char *const jewels[] = {
	/* Keys and keyrings. */
	".ssh", ".gnupg", ".pki", ".password-store", ".age", ".config/age", ".config/sops",
	".config/rage", ".step", ".minisign", ".signify", ".config/op", ".config/1Password",
	".1password", ".config/Bitwarden", ".config/Bitwarden CLI", ".config/keepassxc",
	".config/KeePassXC", ".config/lastpass", ".local/share/lpass", ".config/keybase",
	".local/share/keyrings", ".local/share/kwalletd", ".kde/share/apps/kwallet",
	".gnome2/keyrings", ".config/gopass", ".local/share/gopass", ".config/authenticator",
	".config/Yubico", ".duo",
	/* Sources: hosts of code, version control. */
	".netrc", "._netrc", ".authinfo", ".authinfo.gpg", ".git-credentials",
	".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli", ".config/tea",
	".config/bitbucket", ".config/github-copilot", ".copilot", ".gitcookies", ".hgrc",
	".config/hg", ".subversion/auth",
	/* Registries of packages. */
	".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".config/pip/pip.conf", ".pip/pip.conf",
	".config/pypoetry/auth.toml", ".continuum", ".conda/.token", ".config/uv/credentials",
	".local/share/uv/credentials", ".cargo/credentials", ".cargo/credentials.toml",
	".gem/credentials", ".local/share/gem/credentials", ".bundle/config", ".m2/settings.xml",
	".m2/settings-security.xml", ".gradle/gradle.properties", ".gradle/init.d",
	".ivy2/.credentials", ".sbt/.credentials", ".sbt/credentials", ".config/composer/auth.json",
	".composer/auth.json", ".nuget/NuGet", ".config/NuGet", ".pub-cache/credentials.json",
	".config/dart", ".hex/hex.config", ".julia/servers", ".android/adbkey",
	".android/debug.keystore", ".dotnet/corefx/cryptography", ".microsoft/usersecrets",
	".config/configstore", ".erlang.cookie", ".local/share/coursier/credentials",
	".config/coursier/credentials", ".config/go/env", ".luarocks/upload_config.lua",
	/* Clouds and services. */
	".aws", ".azure", ".config/gcloud", ".boto", ".gsutil", ".s3cfg", ".config/rclone", ".kube",
	".config/k9s", ".minikube", ".docker/config.json", ".docker/contexts", ".docker/trust",
	".config/containers", ".config/docker", ".config/helm", ".local/share/containers/auth.json",
	".terraformrc", ".terraform.d/credentials.tfrc.json", ".config/terraform",
	".pulumi/credentials.json", ".vault-token", ".config/vault", ".config/doctl",
	".config/hcloud", ".config/scw", ".config/linode-cli", ".config/vultr-cli", ".oci",
	".aliyun", ".config/aliyun", ".tccli", ".bluemix", ".ibmcloud", ".fly", ".config/fly",
	".netlify", ".config/netlify", ".vercel", ".local/share/com.vercel.cli", ".config/vercel",
	".railway", ".config/railway", ".heroku", ".config/heroku", ".local/share/heroku",
	".wrangler", ".config/.wrangler", ".config/cloudflared", ".cloudflared", ".ngrok2",
	".config/ngrok", ".tsh", ".config/teleport", ".config/tailscale", ".nomad", ".consul",
	".chef", ".puppetlabs", ".ansible/vault", ".vault_pass", ".databrickscfg", ".databricks",
	".snowflake", ".snowsql", ".config/snowflake", ".dbt/profiles.yml", ".kaggle",
	".huggingface", ".cache/huggingface/token", ".config/wandb", ".comet.config",
	".config/stripe", ".sentryclirc", ".config/sentry", ".config/firebase", ".config/supabase",
	".supabase", ".planetscale", ".config/planetscale", ".config/argocd", ".argocd",
	".config/circleci", ".circleci/cli.yml", ".config/buildkite", ".config/gitlab-runner",
	".travis", ".config/datadog", ".ddev/.global_secrets", ".config/newrelic",
	/* Databases, mail, remote desktops. */
	".pgpass", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".mongorc.js", ".mongodb",
	".rediscli_auth", ".config/dbeaver", ".dbeaver4", ".local/share/DBeaverData",
	".config/filezilla", ".config/remmina", ".local/share/remmina", ".config/freerdp", ".vnc",
	".config/tigervnc", ".cifs", ".smbcredentials", ".fetchmailrc", ".msmtprc", ".config/msmtp",
	".mbsyncrc", ".config/isyncrc", ".offlineimaprc", ".muttrc", ".mutt", ".config/neomutt",
	".config/aerc", ".mailrc", ".davfs2",
	/* Coding agents: tokens and transcripts. */
	".claude/.credentials.json", ".claude.json", ".claude/projects", ".claude/history.jsonl",
	".config/claude", ".config/Claude", ".config/anthropic", ".codex/auth.json",
	".codex/sessions", ".codex/history.jsonl", ".config/openai", ".openai",
	".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/tmp", ".cursor",
	".config/Cursor", ".config/cursor", ".aider.conf.yml", ".aider.chat.history.md", ".aider",
	".continue", ".codeium", ".windsurf", ".config/Windsurf", ".amp", ".config/amp",
	".local/share/amp", ".local/share/opencode", ".config/opencode", ".config/goose",
	".local/share/goose", ".qwen", ".kiro", ".roo", ".cline", ".config/aichat", ".config/llm",
	".config/io.datasette.llm", ".ollama/id_ed25519", ".tabnine", ".config/TabNine",
	".config/zed", ".local/share/zed", ".config/Code", ".config/Code - Insiders",
	".config/VSCodium", ".vscode-server/data", ".config/JetBrains", ".lark-cli",
	/* Browsers and messengers: sessions, cookies. */
	".mozilla", ".thunderbird", ".librewolf", ".waterfox", ".floorp", ".zen",
	".config/google-chrome", ".config/google-chrome-beta", ".config/chromium",
	".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
	".config/qutebrowser", ".local/share/qutebrowser", ".local/share/epiphany",
	".config/epiphany", ".var/app", "snap", ".tor-browser", ".local/share/torbrowser",
	".config/Slack", ".config/discord", ".config/Signal", ".config/Element",
	".config/Microsoft", ".config/teams-for-linux", ".config/zoom.us.conf", ".zoom",
	".local/share/TelegramDesktop", ".config/WhatsApp", ".config/skypeforlinux", ".purple",
	".weechat", ".config/weechat", ".irssi", ".config/evolution", ".local/share/evolution",
	".config/goa-1.0", ".cert", ".config/akonadi", ".local/share/akonadi", ".config/kdeconnect",
	".config/obs-studio", ".local/share/Steam", ".steam",
	/* Wallets. */
	".bitcoin", ".ethereum", ".electrum", ".config/solana", ".config/Exodus",
	".config/Ledger Live", ".config/Trezor", ".monero", ".bitmonero", ".dogecoin", ".litecoin",
	".foundry/keystores", ".near-credentials", ".sui", ".aptos", ".cardano",
	/* Histories, and what lets others onto the desktop. */
	".bash_history", ".zsh_history", ".zhistory", ".histfile", ".sh_history", ".ash_history",
	".local/share/fish/fish_history", ".local/share/atuin", ".config/atuin", ".python_history",
	".node_repl_history", ".ipython", ".irb_history", ".pry_history", ".psql_history",
	".mysql_history", ".sqlite_history", ".rediscli_history", ".mongo_history", ".dbshell",
	".lesshst", ".wget-hsts", ".viminfo", ".local/share/recently-used.xbel",
	".local/share/Trash", ".Xauthority", ".ICEauthority", ".xsession-errors",
	".dbus/session-bus", ".esd_auth", ".config/pulse/cookie",
};

static const char *const caches[] = {
	".cache", ".npm", ".local/state", ".ccache", ".node-gyp", ".pnpm-store",
};

static const char *const sockets[] = {
	"/run/docker.sock", "/run/docker", "/run/containerd", "/run/podman", "/run/crio",
	"/run/k3s", "/run/buildkit", "/run/libvirt", "/run/lxd.socket", "/run/incus",
	"/var/lib/lxd/unix.socket", "/var/lib/incus/unix.socket",
	"/var/snap/lxd/common/lxd/unix.socket", "/var/snap/docker/run/docker.sock", "/run/dbus",
	"/run/systemd/private", "/run/systemd/io.systemd.ManagedOOM",
	"/run/systemd/userdb/io.systemd.DynamicUser", "/run/snapd.socket", "/run/snapd-snap.socket",
	"/run/avahi-daemon", "/run/cups", "/run/gssproxy.sock", "/run/nscd/socket", "/run/pcscd",
	"/run/rpcbind.sock", "/run/acpid.socket", "/run/tailscale", "/run/postgresql",
	"/run/mysqld", "/run/redis", "/tmp/.X11-unix", "/tmp/.ICE-unix",
	"/nix/var/nix/daemon-socket",
};

static const char *const runtime_sockets[] = {
	"bus", "systemd", "gnupg", "keyring", "ssh-agent.socket", "openssh_agent", "gcr",
	"docker.sock", "docker", "podman", "containers", "containerd", "buildkit", "dbus-1",
	"at-spi", "pulse", "pipewire-0", "pipewire-0-manager", "wayland-0", "wayland-1",
	"pk-debconf-socket", "p11-kit", "kwallet5.socket", "kwalletd5.socket", "1password",
	"yubikey-agent", "vscode-ipc.sock", "git-credential-cache", "libvirt", "tmux",
};

static const char *const root_secrets[] = {
	"/root/.ssh", "/root/.gnupg", "/root/.aws", "/root/.kube", "/root/.docker", "/root/.config",
	"/root/.netrc", "/root/.git-credentials", "/root/.my.cnf", "/root/.pgpass",
	"/root/.vault-token", "/root/.bash_history", "/etc/fsbox", "/var/lib/docker",
	"/var/lib/containerd", "/var/lib/kubelet", "/var/lib/rancher", "/var/lib/etcd",
	"/var/lib/libvirt", "/var/lib/sss/secrets", "/var/lib/systemd/credential.secret",
	"/var/lib/private", "/var/lib/krb5kdc", "/var/lib/NetworkManager", "/var/lib/bluetooth",
	"/var/lib/tailscale", "/var/spool/cron", "/var/backups", "/boot", "/lost+found",
};
/* clang-format on */

#define NAMES(array) ((struct name_list){ .names = (array), .count = ARRAY_SIZE(array) })

struct name_list generic_system(void)
{
	return NAMES(system_paths);
}

struct name_list generic_system_secrets(void)
{
	return NAMES(system_secrets);
}

struct name_list generic_toolchains(void)
{
	return NAMES(toolchains);
}

struct name_list generic_jewels(void)
{
	return NAMES(jewels);
}

struct name_list generic_caches(void)
{
	return NAMES(caches);
}

struct name_list generic_sockets(void)
{
	return NAMES(sockets);
}

struct name_list generic_runtime_sockets(void)
{
	return NAMES(runtime_sockets);
}

struct name_list generic_root_secrets(void)
{
	return NAMES(root_secrets);
}
