//! A slot of a cluster that moves to another primary, as `redis-cli --cluster reshard` does it.

use super::server::{Cluster, Redis};

impl Cluster {
    /// Begins to move the slot of a key to another primary, and says which two they are.
    pub(crate) fn begin_to_move(&mut self, key: &str) -> (u16, u16) {
        let slot = self.slot_of(key).to_string();
        let from = self.primary_of(key).port;
        let is_primary = |node: &&Redis| node.command(&["ROLE"]).starts_with("master");
        let to =
            self.nodes.iter().filter(is_primary).map(|node| node.port).find(|port| *port != from).unwrap();
        let (source, target) = (self.at(from), self.at(to));
        let (own, other) = (source.command(&["CLUSTER", "MYID"]), target.command(&["CLUSTER", "MYID"]));
        assert_eq!(target.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &own]), "OK");
        assert_eq!(source.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &other]), "OK");
        (from, to)
    }

    /// Moves what is left of the slot of a key, and ends its move.
    pub(crate) fn end_the_move(&self, key: &str, (from, to): (u16, u16)) {
        let slot = self.slot_of(key);
        // Keys are bytes, which a shell would not carry.
        let mut source = redis::Client::open(self.at(from).url()).unwrap().get_connection().unwrap();
        loop {
            let mut asking = redis::cmd("CLUSTER");
            let keys: Vec<Vec<u8>> =
                asking.arg("GETKEYSINSLOT").arg(slot).arg(100).query(&mut source).unwrap();
            if keys.is_empty() {
                break;
            }
            let mut moving = redis::cmd("MIGRATE");
            moving.arg("127.0.0.1").arg(to).arg("").arg(0).arg(5_000).arg("KEYS").arg(keys);
            moving.exec(&mut source).expect("nobody has written to where they go");
        }
        let owner = self.at(to).command(&["CLUSTER", "MYID"]);
        for port in [to, from] {
            let told = self.at(port).command(&["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &owner]);
            assert_eq!(told, "OK");
        }
    }

    /// The node at a port.
    pub(crate) fn at(&self, port: u16) -> &Redis {
        self.nodes.iter().find(|node| node.port == port).unwrap()
    }
}
