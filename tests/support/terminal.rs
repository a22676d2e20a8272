//! The binary at a terminal: a pseudo terminal as its stdin, stdout and stderr.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    process::{Child, Command},
    sync::{Arc, Mutex},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::wait_for;

pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    pub fn start(command: &mut Command) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = command.spawn().unwrap();
        // The command holds the other side; with it open nobody would see its end.
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let keyboard = File::from(ours);
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut reader, shown) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The other side gone is an error on Linux; either way there is nothing more to see.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Terminal { child, keyboard, screen }
    }

    pub fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Waits until the text was shown so many times.
    pub fn shows(&self, text: &str, times: usize) {
        wait_for(&format!("{text:?} {times} times on the terminal:\n{}", self.screen()), || {
            (self.screen().matches(text).count() >= times).then_some(())
        });
    }

    pub fn types(&mut self, line: &str) {
        self.keyboard.write_all(line.as_bytes()).unwrap();
        self.keyboard.write_all(b"\n").unwrap();
    }

    /// Ctrl-D on an empty line.
    pub fn ends_input(&mut self) {
        self.keyboard.write_all(&[4]).unwrap();
    }

    pub fn exit_code(mut self) -> i32 {
        wait_for("the command at the terminal ends", || self.child.try_wait().unwrap()).code().unwrap()
    }
}
