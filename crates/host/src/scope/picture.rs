//! Pictures of a working tree: what every file that git does not ignore held at one moment.
//!
//! Each folder has a git directory of its own below the project's state, with its own index and objects; the
//! repository's objects are borrowed. So a picture costs what `git status` costs, needs no repository, reads
//! none of the repository's configuration, hooks, filters or attributes (an agent may have written them), is
//! not fooled by flags in the repository's index, and keeps what is not committed. Must not know roles.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use gatewright_attempts::{Stuck, wait_for_git};
use serde::{Deserialize, Serialize};

use super::{name, protect::mark_of, special};
use crate::plain_file;

/// Larger files that are new or changed are told by size and time, not by content.
const CONTENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Files below embedded repositories that are looked at.
const EMBEDDED_MAX: usize = 200_000;
/// A folder with more is not a project, and nobody wants to wait for its picture.
const NAMES_MAX: usize = 500_000;
const NEW_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Folders inside each other without any file in them.
const LEVELS_MAX: usize = 64;
/// Names longer than this in total go to git in several calls.
const PATHS_PER_CALL: usize = 500;
/// Whose rules can hide what lies beside it, and itself.
pub const IGNORE_FILE: &str = ".gitignore";
/// Folders that programs make for themselves with such a file in them: caches and environments, which are ignored like
/// build output. Anything else that ignores itself is shown.
const IGNORES_ITSELF: [&str; 8] =
    [".hypothesis", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox", ".venv", "venv"];

#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    #[error("git is needed to see what an attempt changes, and could not be started: {source}")]
    NoGit { source: io::Error },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {files} files of {bytes} bytes are not ignored by git, too many to compare; is this the folder of a project?", folder.display())]
    TooMuch { folder: PathBuf, files: usize, bytes: u64 },
    #[error("`git {command}` failed: {message}")]
    Git { command: String, message: String },
    #[error("what is in {} cannot be told: {source}", folder.display())]
    Stuck { folder: PathBuf, source: Stuck },
}

/// The name of a picture: a tree of the folder's own git directory, and the large files beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    pub tree: String,
    /// What the tree does not hold: files that are too large for it (path to size, time and inode), and pipes, sockets
    /// and devices (path to kind and inode).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub large: BTreeMap<String, String>,
    /// Pipes, sockets and devices that git ignores.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ignored_special: BTreeMap<String, String>,
    /// Repositories inside the folder: what makes them one, to a mark of it. `None`: nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repositories: Option<BTreeMap<String, String>>,
}

impl Picture {
    /// The folders of repositories inside.
    pub fn repository_folders(&self) -> impl Iterator<Item = &str> {
        self.repositories.iter().flat_map(BTreeMap::keys).filter_map(|name| name.strip_suffix("/.git"))
    }
}

/// One side of a difference: how git names a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// `100644`, `100755`, `120000`; `160000` for a repository; empty for what else the tree does not hold.
    pub mode: String,
    pub id: String,
}

/// One path that two pictures show differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: String,
    pub before: Option<Content>,
    pub after: Option<Content>,
    /// The name it had, if this is a rename.
    pub from: Option<String>,
}

impl Difference {
    /// A repository that came or went is no file: nobody has to claim it, and nothing of it can be put back.
    pub fn is_repository(&self) -> bool {
        self.before.iter().chain(&self.after).any(|side| side.mode == REPOSITORY_MODE)
    }

    /// `added`, `modified` or `deleted`.
    pub fn word(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "added",
            (Some(_), None) => "deleted",
            (Some(_), Some(_)) => "modified",
        }
    }
}

/// How git writes that a repository is in a place.
const REPOSITORY_MODE: &str = "160000";
/// Held by whoever takes a picture.
const LOCK_FILE: &str = "gatewright.lock";
/// Files that the repository tracks although its rules ignore them, and of which index that was found.
const TRACKED_FILE: &str = "gatewright.tracked";
/// Says whose pictures they are.
const FOLDER_FILE: &str = "gatewright.folder";

/// The pictures of one folder.
#[derive(Clone, Debug)]
pub struct Pictures {
    folder: PathBuf,
    git_dir: PathBuf,
    /// Folders inside it that are no part of the work: run directories.
    except: Vec<String>,
}

impl Pictures {
    /// `store` is where pictures of this project's folders are kept; `except` are paths inside `folder`.
    pub fn of(folder: &Path, store: &Path, except: &[&Path]) -> Pictures {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = &blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex()[..16];
        let inside = |path: &&Path| path.strip_prefix(&folder).ok().map(|path| name_of(path.as_os_str()));
        let except = except.iter().filter_map(inside).filter(|path| !path.is_empty()).collect();
        Pictures { git_dir: store.join(name), folder, except }
    }

    /// Takes a picture of the folder as it is now.
    pub fn take(&self) -> Result<Picture, PictureError> {
        let _alone = self.lock()?;
        match self.prepare().and_then(|()| self.picture()) {
            Err(PictureError::Git { .. } | PictureError::Io { .. }) => {
                // What a killed git left, or a full disk: the index is only a cache.
                let _ = fs::remove_file(self.git_dir.join("index"));
            }
            other => return other,
        }
        match self.prepare().and_then(|()| self.picture()) {
            Err(PictureError::Git { .. } | PictureError::Io { .. }) => {
                // Nothing in here is synced: after a power cut it may hold anything. Who was at work then is
                // gone too, so nobody's picture is missed.
                self.start_over()?;
                self.prepare()?;
                self.picture()
            }
            other => other,
        }
    }

    /// Empties the git directory, apart from the lock that is held.
    fn start_over(&self) -> Result<(), PictureError> {
        empty(&self.git_dir).map_err(|source| PictureError::Io { path: self.git_dir.clone(), source })
    }

    fn picture(&self) -> Result<Picture, PictureError> {
        let _ = fs::remove_file(self.git_dir.join("index.lock"));
        // Times that changed without the content are noted once, not compared again and again. It exits
        // with 1 when something needs an update, which is no failure.
        if let Err(error @ PictureError::Stuck { .. }) = self.git(&["update-index", "-q", "--refresh"], &[]) {
            return Err(error);
        }
        let listed = self.git(&["ls-files", "-z", "-m", "-o", "--exclude-standard"], &[])?;
        let mut large = BTreeMap::new();
        let mut names: Vec<Vec<u8>> = Vec::new();
        for name in listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            if name.ends_with(b"/") {
                self.embedded(name, &mut names);
            } else {
                names.push(name.to_vec());
            }
        }
        names.extend(self.tracked());
        names.retain(|name| match self.large(name) {
            Some((path, mark)) => {
                large.insert(path, mark);
                false
            }
            None => true,
        });
        let bytes = names.iter().map(|name| self.length(name)).sum();
        if names.len() > NAMES_MAX || bytes > NEW_BYTES_MAX {
            return Err(PictureError::TooMuch { folder: self.folder.clone(), files: names.len(), bytes });
        }
        self.add(&names)?;
        let mut picture = Picture { tree: self.write_tree()?, large, ..Picture::default() };
        let rules = self.add_special(&mut picture)?;
        let hidden = self.not_in(&picture, &rules)?;
        if !hidden.is_empty() {
            self.add(&hidden)?;
            picture.tree = self.write_tree()?;
        }
        Ok(picture)
    }

    fn add(&self, names: &[Vec<u8>]) -> Result<(), PictureError> {
        if names.is_empty() {
            return Ok(());
        }
        let mut stdin = names.join(&0);
        stdin.push(0);
        self.git(&["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], &stdin).map(drop)
    }

    fn write_tree(&self) -> Result<String, PictureError> {
        let tree = self.git(&["write-tree"], &[])?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
    }

    /// Those of these names that a picture does not show.
    fn not_in(&self, picture: &Picture, names: &[String]) -> Result<Vec<Vec<u8>>, PictureError> {
        let mut hidden = Vec::new();
        for some in names.chunks(PATHS_PER_CALL) {
            let mut arguments = vec!["ls-tree", "-z", "--full-tree", "--name-only", &picture.tree, "--"];
            arguments.extend(some.iter().map(String::as_str));
            let shown = self.git(&arguments, &[])?;
            let shown: BTreeSet<&[u8]> = shown.split(|byte| *byte == 0).collect();
            let missing = some.iter().map(|name| name::bytes_of(name));
            hidden.extend(missing.filter(|name| !shown.contains(name.as_slice())));
        }
        Ok(hidden)
    }

    /// Files that the repository tracks although its rules ignore them. Only its index is read, and only when it is
    /// another one than the last time; what was found once stays in our own. One that cannot be read names nothing.
    fn tracked(&self) -> Vec<Vec<u8>> {
        use std::os::unix::fs::MetadataExt;
        let Some(index) = git_dir(&self.folder).map(|dir| dir.join("index")) else { return Vec::new() };
        let Ok(data) = fs::symlink_metadata(&index).map(|data| (data.is_file(), data)) else {
            return Vec::new();
        };
        let (true, data) = data else { return Vec::new() };
        let mark = format!("{}-{}-{}.{}", data.len(), data.ino(), data.ctime(), data.ctime_nsec());
        let path = self.git_dir.join(TRACKED_FILE);
        let names = |bytes: &[u8]| -> Vec<Vec<u8>> {
            bytes
                .split(|byte| *byte == 0)
                .skip(1)
                .filter(|name| !name.is_empty())
                .map(<[u8]>::to_vec)
                .collect()
        };
        let known = fs::read(&path).unwrap_or_default();
        if known.split(|byte| *byte == 0).next() == Some(mark.as_bytes()) {
            return names(&known);
        }
        let variable = [("GIT_INDEX_FILE", index.as_os_str())];
        let listed = self.git_with(&variable, &["ls-files", "-z", "-c", "-i", "--exclude-standard"], &[]);
        let Ok(listed) = listed else { return names(&known) };
        let found = [mark.as_bytes(), &listed].join(&0);
        // Without it the next picture asks again.
        let _ = fs::write(&path, &found);
        names(&found)
    }

    /// What git passes over: pipes, sockets and devices, in folders that have files and in new ones without. Gives back
    /// the files with rules of what is ignored: they may ignore themselves.
    fn add_special(&self, picture: &mut Picture) -> Result<Vec<String>, PictureError> {
        let known: BTreeSet<String> = self.folders(picture).into_iter().chain([String::new()]).collect();
        let mut folders: Vec<String> = known.iter().cloned().collect();
        let mut rules = Vec::new();
        let mut repositories = BTreeMap::new();
        for _ in 0..LEVELS_MAX {
            let seen = special::look(&self.folder, &folders, &known, IGNORE_FILE);
            rules.extend(seen.named.into_iter().filter(|path| self.counts_as_rules(path)));
            for name in seen.repositories {
                repositories.extend(self.repository_mark(&name).map(|mark| (name, mark)));
            }
            let names: Vec<&str> =
                seen.special.iter().map(|(path, _)| path).chain(&seen.folders).map(String::as_str).collect();
            if names.is_empty() {
                break;
            }
            let ignored = self.ignored_of(&names)?;
            for (path, mark) in seen.special {
                let map =
                    if ignored.contains(&path) { &mut picture.ignored_special } else { &mut picture.large };
                map.insert(path, mark);
            }
            folders = seen.folders.into_iter().filter(|path| !ignored.contains(path)).collect();
        }
        picture.repositories = Some(repositories);
        Ok(rules)
    }

    /// One folder is told from another that took its place; what only leads to a repository by where it leads.
    fn repository_mark(&self, name: &str) -> Option<String> {
        use std::os::unix::fs::MetadataExt;
        let path = self.folder.join(name::path_of(name));
        let data = fs::symlink_metadata(&path).ok()?;
        if data.is_dir() { Some(format!("repository-{}", data.ino())) } else { mark_of(&path) }
    }

    /// Not that of a cache, nor the one that an engine puts beside run directories.
    fn counts_as_rules(&self, path: &str) -> bool {
        let folder = Path::new(path).parent().unwrap_or(Path::new(""));
        let cache = folder.file_name().is_some_and(|name| IGNORES_ITSELF.iter().any(|cache| name == *cache));
        let of_engine =
            self.except.iter().map(Path::new).any(|dir| dir == folder || dir.parent() == Some(folder));
        !cache && (folder.as_os_str().is_empty() || !of_engine)
    }

    /// Which of these git ignores.
    fn ignored_of(&self, names: &[&str]) -> Result<BTreeSet<String>, PictureError> {
        let mut stdin = names.iter().map(|name| name::bytes_of(name)).collect::<Vec<_>>().join(&0);
        stdin.push(0);
        match self.git(&["check-ignore", "-z", "--stdin", "--no-index"], &stdin) {
            Ok(listed) => Ok(listed
                .split(|byte| *byte == 0)
                .filter(|name| !name.is_empty())
                .map(name::of_bytes)
                .collect()),
            // None of them.
            Err(PictureError::Git { message, .. }) if message.is_empty() => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }

    /// The folders of a picture, each with a file in it or below.
    pub fn folders(&self, picture: &Picture) -> Vec<String> {
        let arguments = ["ls-tree", "-r", "-d", "-z", "--full-tree", "--name-only", picture.tree.as_str()];
        let listed = self.git(&arguments, &[]).unwrap_or_default();
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names.map(name::of_bytes).collect()
    }

    /// Ignored files, those inside folders that are ignored as a whole left out.
    pub fn ignored(&self) -> Vec<String> {
        let arguments = ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"];
        let listed = self.git(&arguments, &[]).unwrap_or_default();
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty() && !name.ends_with(b"/"));
        names.map(name::of_bytes).collect()
    }

    /// A repository inside the folder that git would pass over: its files are files like any other.
    fn embedded(&self, name: &[u8], names: &mut Vec<Vec<u8>>) {
        use std::os::unix::ffi::OsStrExt;
        let start = self.folder.join(OsStr::from_bytes(name));
        let mut folders = vec![start];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, kind) = (entry.path(), entry.file_type());
                if entry.file_name() == ".git" || names.len() >= EMBEDDED_MAX {
                    continue;
                }
                match kind {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(kind) if kind.is_file() || kind.is_symlink() => {
                        if let Ok(inside) = path.strip_prefix(&self.folder) {
                            names.push(inside.as_os_str().as_bytes().to_vec());
                        }
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }

    fn length(&self, name: &[u8]) -> u64 {
        use std::os::unix::ffi::OsStrExt;
        let path = self.folder.join(OsStr::from_bytes(name));
        fs::symlink_metadata(path).map_or(0, |data| data.len())
    }

    fn large(&self, name: &[u8]) -> Option<(String, String)> {
        use std::os::unix::{ffi::OsStrExt, fs::MetadataExt};
        let data = fs::symlink_metadata(self.folder.join(OsStr::from_bytes(name))).ok()?;
        if !data.is_file() || data.len() <= CONTENT_BYTES_MAX {
            return None;
        }
        let mark = format!("{}-{}-{}.{}", data.len(), data.ino(), data.ctime(), data.ctime_nsec());
        Some((name::of_bytes(name), mark))
    }

    /// What two pictures show differently, renames told.
    pub fn differences(&self, before: &Picture, after: &Picture) -> Result<Vec<Difference>, PictureError> {
        let mut found = Vec::new();
        if before.tree != after.tree {
            let raw = self.git(&["diff-tree", "-r", "-z", "-M", "--raw", &before.tree, &after.tree], &[])?;
            found = parse_raw(&raw);
        }
        let mut compare = |mode: &str, one: &BTreeMap<String, String>, two: &BTreeMap<String, String>| {
            let content = |mark: &String| Content { mode: mode.to_owned(), id: mark.clone() };
            for path in one.keys().chain(two.keys()) {
                let (old, new) = (one.get(path).map(content), two.get(path).map(content));
                let known = found.iter().any(|other: &Difference| other.path == *path);
                if old != new && !known {
                    found.push(Difference { path: path.clone(), before: old, after: new, from: None });
                }
            }
        };
        compare("", &before.large, &after.large);
        if let (Some(one), Some(two)) = (&before.repositories, &after.repositories) {
            compare(REPOSITORY_MODE, one, two);
        }
        found.sort_by(|one, two| one.path.cmp(&two.path));
        found.dedup();
        Ok(found)
    }

    /// The content of a path in a picture; `None` if it is not there.
    pub fn content_at(&self, picture: &Picture, path: &str) -> Result<Option<Content>, PictureError> {
        let repository = picture.repositories.as_ref().and_then(|all| all.get(path));
        let beside =
            picture.large.get(path).map(|mark| ("", mark)).or(repository.map(|mark| (REPOSITORY_MODE, mark)));
        if let Some((mode, mark)) = beside {
            return Ok(Some(Content { mode: mode.to_owned(), id: mark.clone() }));
        }
        let listed = self.git(&["ls-tree", "-z", "--full-tree", &picture.tree, "--", path], &[])?;
        let line = String::from_utf8_lossy(&listed).into_owned();
        let mut words = line.split(['\0', '\t']).next().unwrap_or_default().split(' ');
        let (mode, _kind, id) = (words.next(), words.next(), words.next());
        Ok(match (mode, id) {
            (Some(mode), Some(id)) => Some(Content { mode: mode.to_owned(), id: id.to_owned() }),
            _ => None,
        })
    }

    /// What is between two pictures at these paths, as a patch that `git apply` takes.
    pub fn patch(&self, before: &Picture, after: &Picture, paths: &[&str]) -> Result<Vec<u8>, PictureError> {
        let mut patch = Vec::new();
        for some in paths.chunks(PATHS_PER_CALL) {
            let mut arguments =
                vec!["--literal-pathspecs", "diff-tree", "-p", "-r", "--binary", "--full-index"];
            arguments.extend([before.tree.as_str(), after.tree.as_str(), "--"]);
            arguments.extend(some);
            patch.extend(self.git(&arguments, &[])?);
        }
        Ok(patch)
    }

    /// Puts back what a path held before. Errors name the path; the rest is tried all the same by the caller.
    pub fn restore(&self, difference: &Difference) -> Result<(), PictureError> {
        let path = self.folder.join(name::path_of(&difference.path));
        let io = |source| PictureError::Io { path: path.clone(), source };
        if difference.is_repository() {
            return Err(io(io::Error::other("it is a repository, which is not put back and not removed")));
        }
        // Never through a link that the attempt put in the place of a folder.
        if let Some(parent) = path.parent()
            && !parent.canonicalize().unwrap_or_else(|_| parent.to_owned()).starts_with(&self.folder)
        {
            return Err(io(io::Error::other("its folder leads out of the tree")));
        }
        let Some(before) = &difference.before else {
            return fs::remove_file(&path).or_else(gone).map_err(io);
        };
        if before.mode.is_empty() {
            return Err(io(io::Error::other("it is too large to be kept, or no file")));
        }
        let bytes = self.git(&["cat-file", "blob", &before.id], &[])?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        if fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir()) {
            return Err(io(io::Error::other("a folder is in its place")));
        }
        fs::remove_file(&path).or_else(gone).map_err(io)?;
        write_as(&path, &bytes, &before.mode).map_err(io)
    }

    fn lock(&self) -> Result<fs::File, PictureError> {
        let io = |source| PictureError::Io { path: self.git_dir.clone(), source };
        fs::create_dir_all(&self.git_dir).map_err(io)?;
        let path = self.git_dir.join(LOCK_FILE);
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(io)?;
        file.lock().map_err(io)?;
        Ok(file)
    }

    /// The folder's own git directory, and what may have changed around it.
    fn prepare(&self) -> Result<(), PictureError> {
        let io = |source| PictureError::Io { path: self.git_dir.clone(), source };
        if !self.git_dir.join("HEAD").exists() {
            self.git(&["init", "-q", "--bare", "."], &[])?;
            let config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsync = none\n\tcompression = 0\n\tlooseCompression = 0\n\tbigFileThreshold = 16m\n[gc]\n\tauto = 0\n";
            fs::write(self.git_dir.join("config"), config).map_err(io)?;
            fs::write(self.git_dir.join(FOLDER_FILE), self.folder.as_os_str().as_encoded_bytes())
                .map_err(io)?;
        }
        let info = self.git_dir.join("info");
        fs::create_dir_all(&info).map_err(io)?;
        // The highest precedence: nothing in the tree turns line ends round or calls a filter.
        write_if_new(&info.join("attributes"), "* -text -filter -ident -working-tree-encoding\n")
            .map_err(io)?;
        let repository = common_git_dir(&self.folder);
        let of_repository = repository.as_ref().map(|dir| dir.join("info/exclude"));
        let mut exclude =
            of_repository.and_then(|path| plain_file::read_to_string(&path).ok()).unwrap_or_default();
        for path in &self.except {
            exclude.push_str(&format!("\n/{}/\n", name::lossy(path)));
        }
        write_if_new(&info.join("exclude"), &exclude).map_err(io)?;
        if let Some(objects) = repository.map(|dir| dir.join("objects")) {
            // Those of before stay: an earlier picture rests on them, wherever somebody made `.git` lead since.
            let path = self.git_dir.join("objects/info/alternates");
            let mut known = fs::read_to_string(&path).unwrap_or_default();
            let line = objects.display().to_string();
            if !known.lines().any(|other| other == line) {
                known.push_str(&format!("{line}\n"));
                write_if_new(&path, &known).map_err(io)?;
            }
        }
        Ok(())
    }

    fn git(&self, arguments: &[&str], stdin: &[u8]) -> Result<Vec<u8>, PictureError> {
        self.git_with(&[], arguments, stdin)
    }

    fn git_with(
        &self,
        variables: &[(&str, &OsStr)],
        arguments: &[&str],
        stdin: &[u8],
    ) -> Result<Vec<u8>, PictureError> {
        let in_git_dir = arguments.first() == Some(&"init");
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(name);
            }
        }
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
        if let Some(excludes) = user_excludes() {
            command.arg("-c").arg(format!("core.excludesFile={}", excludes.display()));
        }
        if in_git_dir {
            command.current_dir(&self.git_dir);
        } else {
            command
                .current_dir(&self.folder)
                .env("GIT_DIR", &self.git_dir)
                .env("GIT_WORK_TREE", &self.folder);
        }
        command.envs(variables.iter().copied());
        // Names among them may be no text.
        command.args(arguments.iter().map(|argument| name::path_of(argument)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| PictureError::NoGit { source })?;
        let pipe = child.stdin.take();
        // In a thread of its own: git may print before it has read everything.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || pipe.map(|mut pipe| pipe.write_all(stdin)));
            wait_for_git(child)
        });
        let stuck = |source| PictureError::Stuck { folder: self.folder.clone(), source };
        let output = output.map_err(|source| PictureError::NoGit { source })?.map_err(stuck)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(PictureError::Git {
            command: arguments.iter().take(3).copied().collect::<Vec<_>>().join(" "),
            message,
        })
    }
}

/// Removes pictures that nobody needs any more and says how many bytes that were. `is_needed` is asked by folder, while
/// no picture of it can be taken; a later one begins anew. What cannot be removed stays.
pub fn prune(store: &Path, is_needed: &dyn Fn(&Path) -> bool) -> u64 {
    let mut freed = 0;
    for entry in fs::read_dir(store).into_iter().flatten().flatten() {
        let dir = entry.path();
        let Ok(lock) = fs::OpenOptions::new().write(true).open(dir.join(LOCK_FILE)) else { continue };
        if lock.try_lock().is_err() {
            continue;
        }
        // Pictures of before their folder was written down have none: nobody can say that they are not needed.
        let Ok(folder) = fs::read(dir.join(FOLDER_FILE)).map(folder_of) else { continue };
        if is_needed(&folder) {
            continue;
        }
        let bytes = size_of(&dir);
        // Who waits for the lock meanwhile begins with an empty folder; one whose tree is gone waits for nothing.
        let gone = if folder.exists() { empty(&dir) } else { fs::remove_dir_all(&dir) };
        freed += if gone.is_ok() { bytes } else { 0 };
    }
    freed
}

fn folder_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

fn size_of(path: &Path) -> u64 {
    let Ok(data) = fs::symlink_metadata(path) else { return 0 };
    if !data.is_dir() {
        return data.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size_of(&entry.path())).sum()
}

/// Everything in a git directory of ours, apart from its lock.
fn empty(git_dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(git_dir)? {
        let entry = entry?;
        if entry.file_name() == LOCK_FILE {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = entry.path();
        if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) }?;
    }
    Ok(())
}

/// The user's own list of ignored files, where git finds it without any configuration; a configured one is
/// asked for once.
fn user_excludes() -> Option<PathBuf> {
    static CONFIGURED: std::sync::OnceLock<Option<PathBuf>> = std::sync::OnceLock::new();
    CONFIGURED
        .get_or_init(|| {
            let asked = Command::new("git")
                .args(["config", "--global", "--type=path", "--get", "core.excludesFile"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .ok()?;
            let asked = wait_for_git(asked).ok()?.ok()?;
            let path = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
            (asked.status.success() && !path.is_empty()).then(|| PathBuf::from(path))
        })
        .clone()
}

/// The git directory that all worktrees of a folder's repository share, found without git.
pub fn common_git_dir(folder: &Path) -> Option<PathBuf> {
    let own = git_dir(folder)?;
    let common = plain_file::read_to_string(&own.join("commondir")).ok();
    Some(common.map_or_else(|| own.clone(), |path| own.join(path.trim())))
}

/// The git directory of a folder: `.git`, or where the file `.git` points.
pub fn git_dir(folder: &Path) -> Option<PathBuf> {
    let place = folder.join(".git");
    if place.is_dir() {
        return Some(place);
    }
    let text = plain_file::read_to_string(&place).ok()?;
    Some(folder.join(text.trim().strip_prefix("gitdir:")?.trim()))
}

fn parse_raw(raw: &[u8]) -> Vec<Difference> {
    let text = |bytes: &[u8]| name::of_bytes(bytes);
    let mut fields = raw.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut found = Vec::new();
    while let Some(head) = fields.next() {
        let head = text(head);
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, status] = words.as_slice() else { break };
        let side = |mode: &str, id: &str| {
            (mode != "000000").then(|| Content { mode: mode.to_owned(), id: id.to_owned() })
        };
        let (before, after) = (side(old_mode, old), side(new_mode, new));
        let Some(path) = fields.next().map(text) else { break };
        if status.starts_with('R') {
            let Some(to) = fields.next().map(text) else { break };
            found.push(Difference { path: path.clone(), before, after: None, from: None });
            found.push(Difference { path: to, before: None, after, from: Some(path) });
        } else {
            found.push(Difference { path, before, after, from: None });
        }
    }
    found
}

fn name_of(name: &OsStr) -> String {
    name::of_bytes(name.as_encoded_bytes())
}

fn write_if_new(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) { Ok(()) } else { fs::write(path, text) }
}

fn gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn write_as(path: &Path, bytes: &[u8], mode: &str) -> io::Result<()> {
    use std::os::unix::{ffi::OsStrExt, fs::PermissionsExt, fs::symlink};
    if mode == "120000" {
        return symlink(OsStr::from_bytes(bytes), path);
    }
    fs::write(path, bytes)?;
    if mode == "100755" {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree {
        dir: tempfile::TempDir,
    }

    impl Tree {
        fn new(git: bool) -> Tree {
            let tree = Tree { dir: tempfile::tempdir().unwrap() };
            fs::create_dir_all(tree.folder().join("src")).unwrap();
            for name in ["src/a", "src/b", "README"] {
                tree.write(name, &format!("content of {name}, long enough to be told again\n"));
            }
            tree.write(".gitignore", "ignored/\n*.log\n");
            if git {
                tree.git(&["init", "-q"]);
                tree.git(&["add", "-A"]);
                tree.git(&["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]);
            }
            tree
        }

        fn folder(&self) -> PathBuf {
            self.dir.path().join("tree")
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.folder().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn git(&self, arguments: &[&str]) {
            assert!(
                Command::new("git").args(arguments).current_dir(self.folder()).status().unwrap().success()
            );
        }

        fn pictures(&self) -> Pictures {
            Pictures::of(&self.folder(), &self.dir.path().join("store"), &[])
        }
    }

    fn words(differences: &[Difference]) -> Vec<String> {
        let from =
            |one: &Difference| one.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
        differences.iter().map(|one| format!("{} {}{}", one.word(), one.path, from(one))).collect()
    }

    #[test]
    fn a_picture_shows_every_change_but_ignored_files_with_and_without_git() {
        for git in [true, false] {
            let tree = Tree::new(git);
            tree.write("README", "not committed\n");
            let pictures = tree.pictures();
            let before = pictures.take().unwrap();
            assert_eq!(pictures.take().unwrap(), before);
            tree.write("src/a", "changed\n");
            tree.write("new file\nname", "x");
            tree.write("ignored/x", "x");
            tree.write("a.log", "x");
            fs::rename(tree.folder().join("src/b"), tree.folder().join("src/c")).unwrap();
            let after = pictures.take().unwrap();
            let found = pictures.differences(&before, &after).unwrap();
            let expected =
                ["added new file\nname", "modified src/a", "deleted src/b", "added src/c from src/b"];
            assert_eq!(words(&found), expected, "git: {git}");
            for one in &found {
                pictures.restore(one).unwrap();
            }
            assert_eq!(pictures.take().unwrap().tree, before.tree);
            assert_eq!(fs::read_to_string(tree.folder().join("README")).unwrap(), "not committed\n");
        }
    }

    /// Everything a process of the same user can do to hide a change from git.
    #[test]
    fn a_change_cannot_be_hidden_by_flags_commits_filters_or_embedded_repositories() {
        let tree = Tree::new(true);
        let pictures = tree.pictures();
        let before = pictures.take().unwrap();
        let time = fs::metadata(tree.folder().join("src/a")).unwrap().modified().unwrap();
        tree.git(&["update-index", "--assume-unchanged", "src/a"]);
        tree.git(&["config", "filter.evil.clean", "touch ran; cat"]);
        tree.git(&["config", "core.fsmonitor", "touch ran; false"]);
        tree.write(".git/info/attributes", "* filter=evil\n");
        // The same length and the same time.
        let text = fs::read_to_string(tree.folder().join("src/a")).unwrap().replace("long", "LONG");
        tree.write("src/a", &text);
        fs::File::options()
            .write(true)
            .open(tree.folder().join("src/a"))
            .unwrap()
            .set_modified(time)
            .unwrap();
        tree.write("src/b", "committed\n");
        tree.git(&["-c", "core.fsmonitor=false", "-c", "filter.evil.clean=cat", "add", "src/b"]);
        fs::create_dir(tree.folder().join("inner")).unwrap();
        assert!(
            Command::new("git")
                .args(["init", "-q", "inner"])
                .current_dir(tree.folder())
                .status()
                .unwrap()
                .success()
        );
        tree.write("inner/x", "x");
        let after = pictures.take().unwrap();
        let found = pictures.differences(&before, &after).unwrap();
        assert_eq!(words(&found), ["added inner/.git", "added inner/x", "modified src/a", "modified src/b"]);
        assert!(!tree.folder().join("ran").exists(), "nothing of the repository's configuration was run");
        let patch = pictures.patch(&before, &after, &["src/a"]).unwrap();
        assert!(String::from_utf8_lossy(&patch).contains("+content of src/a, LONG"));
    }

    /// A repository without any file is no file of a tree, and it is looked at all the same.
    #[test]
    fn a_repository_inside_is_a_difference_when_it_comes_goes_or_is_another() {
        for git in [true, false] {
            let tree = Tree::new(git);
            let pictures = tree.pictures();
            let before = pictures.take().unwrap();
            for folder in ["deep/er/inner", "ignored/inner"] {
                fs::create_dir_all(tree.folder().join(folder)).unwrap();
                tree.git(&["init", "-q", folder]);
            }
            let with = pictures.take().unwrap();
            let found = pictures.differences(&before, &with).unwrap();
            assert_eq!(words(&found), ["added deep/er/inner/.git"]);
            assert!(found[0].is_repository() && pictures.restore(&found[0]).is_err());
            assert_eq!(
                pictures.content_at(&with, "deep/er/inner/.git").unwrap().as_ref(),
                found[0].after.as_ref()
            );
            // Kept beside, so that the new one cannot have its place on the disk.
            fs::rename(tree.folder().join("deep/er/inner/.git"), tree.dir.path().join("was")).unwrap();
            let without = pictures.take().unwrap();
            let found = pictures.differences(&with, &without).unwrap();
            assert_eq!(words(&found), ["deleted deep/er/inner/.git"]);
            tree.git(&["init", "-q", "deep/er/inner"]);
            let found = pictures.differences(&with, &pictures.take().unwrap()).unwrap();
            assert_eq!(words(&found), ["modified deep/er/inner/.git"]);
            // One that an engine of before took says nothing about them.
            let old = Picture { repositories: None, ..before.clone() };
            assert_eq!(pictures.differences(&old, &with).unwrap(), []);
        }
    }

    /// Git passes over what is neither file nor folder nor link.
    #[test]
    fn pipes_and_sockets_are_changes_like_any_other() {
        let tree = Tree::new(true);
        let pipe = |name: &str| {
            let path = tree.folder().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        };
        pipe("src/old");
        let pictures = tree.pictures();
        let before = pictures.take().unwrap();
        assert_eq!(pictures.take().unwrap(), before);
        fs::remove_file(tree.folder().join("src/b")).unwrap();
        fs::remove_file(tree.folder().join("src/old")).unwrap();
        for name in ["src/b", "src/new", "empty/below/pipe", "ignored/pipe", "pipe.log"] {
            pipe(name);
        }
        let _socket = std::os::unix::net::UnixListener::bind(tree.folder().join("socket")).unwrap();
        let after = pictures.take().unwrap();
        let found = pictures.differences(&before, &after).unwrap();
        let expected =
            ["added empty/below/pipe", "added socket", "deleted src/b", "added src/new", "deleted src/old"];
        assert_eq!(words(&found), expected);
        assert_eq!(after.ignored_special.keys().collect::<Vec<_>>(), ["pipe.log"]);
        for one in found.iter().filter(|one| one.path != "src/old") {
            pictures.restore(one).unwrap();
        }
        assert!(tree.folder().join("src/b").is_file(), "the file is back");
        assert!(!tree.folder().join("src/new").exists());
    }

    /// After a power cut files that were not synced may be empty.
    #[test]
    fn a_store_that_lost_its_content_is_made_anew() {
        let tree = Tree::new(true);
        let pictures = tree.pictures();
        let before = pictures.take().unwrap();
        for name in ["HEAD", "config", "index"] {
            fs::write(pictures.git_dir.join(name), "").unwrap();
        }
        fs::remove_dir_all(pictures.git_dir.join("objects")).unwrap();
        assert_eq!(pictures.take().unwrap().tree, before.tree);
    }
}
