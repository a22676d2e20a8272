//! Finds workflows by name or path: the project's before the built-in ones; and the configuration.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_host::{
    clock::SystemClock,
    disk::{RealDisk, SharedDisk},
    project::{Project, user_config},
    scope::meanwhile,
    store::RunStore,
};
use gatewright_workflow::{
    config::{Config, ConfigText},
    diagnostic::{Diagnostic, render_all},
    frozen::Frozen,
    load::{LoadOptions, Loaded, Sources, load, load_all},
    yaml::tree::limits,
};

use crate::command_error::{CommandError, Kind};

include!(concat!(env!("OUT_DIR"), "/method_files.rs"));

/// Where a command was typed: the project, its configuration, its runs.
pub struct Session {
    pub project: Project,
    pub config: Config,
    pub disk: SharedDisk,
    pub clock: Arc<SystemClock>,
}

/// A text that people write for us. Of one that is larger than is read of any, only so much is taken that whoever
/// reads it can say so.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let most = limits::BYTES_MAX;
    let mut bytes = Vec::new();
    // A character that is cut at the end takes nothing away from the limit.
    std::fs::File::open(path)?.take(most as u64 + 8).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
}

/// The configuration of the user, or of the project: as it was before somebody began who is at work in the checkout now,
/// because a command in there would run with the rights of the user.
pub fn configuration_text(project: &Project, path: &Path) -> std::io::Result<String> {
    let was = meanwhile::changed(project).and_then(|found| Some((found.as_it_was(path)?, found)));
    let Some((was, found)) = was else { return read_text(path) };
    eprintln!(
        "note: {} was changed while `{}` of run {} is at work in this checkout; it is read as it was before",
        path.display(),
        found.step,
        found.run
    );
    match was {
        Ok(Some(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(None) => Err(std::io::ErrorKind::NotFound.into()),
        Err(problem) => Err(std::io::Error::other(problem)),
    }
}

impl Session {
    /// The session of the working directory. A broken configuration is said at once, in full.
    pub fn open() -> Result<Session, CommandError> {
        let (session, diagnostics) = Session::as_it_is()?;
        refuse(&diagnostics)?;
        Ok(session)
    }

    /// The session, and what is wrong with its configuration: for who must not complain about that.
    pub fn as_it_is() -> Result<(Session, Vec<Diagnostic>), CommandError> {
        let project = Project::here()?;
        let mut layers = Vec::new();
        for path in [user_config(), Some(project.root.join(".gatewright/config.yaml"))].into_iter().flatten()
        {
            match configuration_text(&project, &path) {
                Ok(text) => layers.push(ConfigText { label: path.display().to_string(), text }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(CommandError::invalid(format!(
                        "{}: cannot be read: {error}",
                        path.display()
                    )));
                }
            }
        }
        let (config, diagnostics) = Config::parse(&layers);
        let project = match &config.state_dir {
            Some(dir) if std::env::var_os("GATEWRIGHT_STATE_DIR").is_none() => {
                let root = project.root.join(dir);
                Project::at(&project.root, &root)
            }
            Some(_) | None => project,
        };
        let session = Session { project, config, disk: Arc::new(RealDisk), clock: Arc::new(SystemClock) };
        Ok((session, diagnostics))
    }

    pub fn store(&self) -> RunStore {
        RunStore::new(self.disk.clone(), self.project.clone())
    }

    /// Where a workflow is, by name or path.
    pub fn find(&self, name: &str) -> Result<Definition, CommandError> {
        find(&self.project.root, name)
    }

    /// Loads a workflow or says everything that is wrong with it.
    pub fn load(&self, name: &str, options: &LoadOptions<'_>) -> Result<Frozen, CommandError> {
        let definition = self.find(name)?;
        let Loaded { frozen, diagnostics } =
            load(&definition.label, &definition.text, &definition.files, options);
        refuse(&diagnostics)?;
        for warning in &diagnostics {
            eprint!("{}", warning.render());
        }
        frozen.ok_or_else(|| definition.unusable())
    }

    /// Loads a workflow with all of its profiles. Its warnings are said by whoever loads it to run it.
    pub fn load_all(&self, name: &str, options: &LoadOptions<'_>) -> Result<Frozen, CommandError> {
        let definition = self.find(name)?;
        let Loaded { frozen, diagnostics } =
            load_all(&definition.label, &definition.text, &definition.files, options);
        refuse(&diagnostics)?;
        frozen.ok_or_else(|| definition.unusable())
    }
}

/// Stops with all errors, if there are any.
fn refuse(diagnostics: &[Diagnostic]) -> Result<(), CommandError> {
    let errors: Vec<Diagnostic> =
        diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).cloned().collect();
    if errors.is_empty() {
        return Ok(());
    }
    eprint!("{}", render_all(&errors));
    let count = errors.len();
    let file = errors.first().map(|error| error.file.clone()).unwrap_or_default();
    Err(CommandError::new(
        Kind::Invalid,
        format!("{file}: {count} {}", if count == 1 { "error" } else { "errors" }),
    ))
}

/// A workflow file that was found.
pub struct Definition {
    /// How messages name it.
    pub label: String,
    pub text: String,
    pub files: Files,
}

impl Definition {
    fn unusable(&self) -> CommandError {
        CommandError::invalid(format!("{}: cannot be used", self.label))
    }
}

/// The files around a workflow: on disk, or built in.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    /// A folder inside a built-in method: `report-chain`, `report-chain/workflows`.
    Method(String),
}

/// `folder/../roles/x.md` without the detour; `None` if it leads out of the method.
fn inside_method(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
            if parts.is_empty() {
                return None;
            }
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

impl Sources for Files {
    fn read(&self, path: &str) -> Option<String> {
        if let Some(rest) = path.strip_prefix("~/") {
            let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
            return read_text(&PathBuf::from(home).join(rest)).ok();
        }
        let beside = match &self.place {
            Place::Folder(folder) => read_text(&folder.join(path)).ok(),
            Place::Method(folder) => inside_method(folder, path).and_then(|name| method_file(&name)),
        };
        beside.or_else(|| read_text(&self.root.join(path.trim_start_matches("./"))).ok())
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let in_folder = |folder: &Path| {
            let entries = std::fs::read_dir(folder.join(dir)).into_iter().flatten().flatten();
            let mut names: Vec<String> =
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            names
        };
        let beside = match &self.place {
            Place::Folder(folder) => in_folder(folder),
            Place::Method(folder) => {
                let prefix = inside_method(folder, dir).map(|folder| format!("{folder}/"));
                let names = METHOD_FILES.iter().filter_map(|(name, _)| name.strip_prefix(prefix.as_deref()?));
                names.map(str::to_owned).collect()
            }
        };
        if beside.is_empty() { in_folder(&self.root) } else { beside }
    }

    fn workflow(&self, name: &str) -> Option<(String, String, Box<dyn Sources>)> {
        let beside = match &self.place {
            Place::Folder(folder) => {
                let path = folder.join(format!("{name}.yaml"));
                read_text(&path).ok().map(|text| (path.display().to_string(), text, self.clone()))
            }
            Place::Method(folder) => method_file(&format!("{folder}/{name}.yaml"))
                .map(|text| (format!("built-in {folder}/{name}"), text, self.clone())),
        };
        beside
            .or_else(|| find(&self.root, name).ok().map(|found| (found.label, found.text, found.files)))
            .map(|(label, text, files)| (label, text, Box::new(files) as Box<dyn Sources>))
    }
}

fn method_file(name: &str) -> Option<String> {
    METHOD_FILES.iter().find(|(path, _)| *path == name).map(|(_, text)| (*text).to_owned())
}

/// A schema that one of the built-in methods has in its `schemas/`.
pub fn method_schema(name: &str) -> Option<String> {
    let end = format!("/schemas/{name}.schema.json");
    METHOD_FILES.iter().find(|(path, _)| path.ends_with(&end)).map(|(_, text)| (*text).to_owned())
}

/// Names of all of them, in order.
pub fn method_schemas() -> Vec<&'static str> {
    let name = |path: &'static str| path.split_once("/schemas/")?.1.strip_suffix(".schema.json");
    let mut names: Vec<&str> = METHOD_FILES.iter().filter_map(|(path, _)| name(path)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Names of the built-in methods, with the workflows each has.
pub fn built_in() -> BTreeMap<String, Vec<String>> {
    let mut methods: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, _) in METHOD_FILES {
        let Some((method, rest)) = path.split_once('/') else { continue };
        let entry = methods.entry(method.to_owned()).or_default();
        if let Some(name) = rest.strip_prefix("workflows/").and_then(|name| name.strip_suffix(".yaml")) {
            entry.push(name.to_owned());
        }
    }
    methods.retain(|method, _| method_file(&format!("{method}/workflow.yaml")).is_some());
    methods
}

/// Files of a built-in method, relative to its folder.
pub fn files_of(method: &str) -> Vec<(&'static str, &'static str)> {
    let prefix = format!("{method}/");
    METHOD_FILES
        .iter()
        .filter_map(|(path, text)| path.strip_prefix(prefix.as_str()).map(|rest| (rest, *text)))
        .collect()
}

/// Workflow names of a project, for lists and suggestions.
pub fn of_project(root: &Path) -> Vec<String> {
    let folder = root.join(".gatewright/workflows");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            if entry.path().join("workflow.yaml").is_file() {
                Some(name)
            } else {
                name.strip_suffix(".yaml").map(str::to_owned)
            }
        })
        .collect();
    names.sort();
    names
}

/// A path, a workflow of the project, `method`, `method/workflow`, or a unique bare workflow name.
pub fn find(root: &Path, name: &str) -> Result<Definition, CommandError> {
    let ends_as_file = Path::new(name).extension().is_some_and(|end| end == "yaml" || end == "yml");
    let is_path = ends_as_file || name.starts_with("./") || name.starts_with('/');
    if is_path {
        return from_file(root, Path::new(name));
    }
    let workflows = root.join(".gatewright/workflows");
    let ejected = name
        .split_once('/')
        .map(|(method, workflow)| workflows.join(method).join(format!("workflows/{workflow}.yaml")));
    for path in [workflows.join(format!("{name}.yaml")), workflows.join(name).join("workflow.yaml")]
        .into_iter()
        .chain(ejected)
    {
        if path.is_file() {
            return from_file(root, &path);
        }
    }
    let built_in = built_in();
    let (method, workflow) =
        name.split_once('/').map_or((name, None), |(method, workflow)| (method, Some(workflow)));
    if built_in.contains_key(method) {
        let file = workflow.map_or_else(
            || format!("{method}/workflow.yaml"),
            |workflow| format!("{method}/workflows/{workflow}.yaml"),
        );
        if let Some(text) = method_file(&file) {
            return Ok(from_method(root, method, &file, text));
        }
    }
    let homes: Vec<String> = built_in.keys().flat_map(|method| called(method, name)).collect();
    if let [file] = homes.as_slice() {
        let method = file.split('/').next().unwrap_or_default();
        if let Some(text) = method_file(file) {
            return Ok(from_method(root, method, file, text));
        }
    }
    let known: Vec<String> = of_project(root).into_iter().chain(built_in.into_keys()).collect();
    let places = format!(
        "neither {} nor a built-in method has it",
        root.join(format!(".gatewright/workflows/{name}.yaml")).display()
    );
    Err(CommandError::invalid(format!("there is no workflow `{name}`: {places}"))
        .hint(format!("known here: {}", known.join(", ")))
        .hint("gatewright methods describes them; gatewright init writes a workflow of your own")
        .hint("a path to a file works too: gatewright run ./my.yaml \"…\""))
}

/// Files of a method that answer to a bare name: one of its workflows, or its default one by the
/// name it gives itself.
fn called(method: &str, name: &str) -> Vec<String> {
    let own = format!("{method}/workflow.yaml");
    let default = method_file(&own)
        .is_some_and(|text| text.lines().any(|line| line.trim_end() == format!("workflow: {name}")));
    let other = format!("{method}/workflows/{name}.yaml");
    default.then_some(own).into_iter().chain(method_file(&other).map(|_| other)).collect()
}

fn from_method(root: &Path, method: &str, file: &str, text: String) -> Definition {
    let folder = file.rsplit_once('/').map_or(method, |(folder, _)| folder).to_owned();
    Definition {
        label: format!("built-in {file}"),
        text,
        files: Files { root: root.to_owned(), place: Place::Method(folder) },
    }
}

fn from_file(root: &Path, path: &Path) -> Result<Definition, CommandError> {
    let text = read_text(path).map_err(|error| {
        CommandError::invalid(format!("{}: cannot be read: {error}", path.display()))
            .hint("gatewright methods lists what is built in")
    })?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    Ok(Definition {
        label: path.display().to_string(),
        text,
        files: Files { root: root.to_owned(), place: Place::Folder(folder) },
    })
}
