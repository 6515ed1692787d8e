//! Policies and kill switches over HTTP, and the numbers of the first screen.

use serde_json::{Value, json};

use super::lists::tenant_of;
use super::orders::{operator_of, violations};
use super::query::Query;
use super::reply::{error, json_reply};
use super::{Answered, Caller};
use crate::observatory::Observatory;
use crate::policies::Change;

impl Observatory {
    pub(super) async fn show_overview(&self, query: &Query, caller: &Caller) -> Answered {
        let since = query.moment("since")?;
        Ok(json_reply(200, &self.overview(tenant_of(query, caller), since).await?))
    }

    pub(super) async fn list_policies(&self, caller: &Caller) -> Answered {
        for_all_tenants(caller)?;
        Ok(json_reply(200, &self.policies().await?))
    }

    pub(super) fn list_budgets(&self, caller: &Caller) -> Answered {
        for_all_tenants(caller)?;
        Ok(json_reply(200, &self.budgets()))
    }

    pub(super) async fn try_out_policy(&self, body: &Value, caller: &Caller) -> Answered {
        let policy = &body["policy"];
        if !policy.is_object() {
            return Err(Box::new(violations(&[("policy".to_owned(), "is required".to_owned())])));
        }
        let last = match &body["last"] {
            Value::Null => None,
            last => match last.as_u64().and_then(|last| u32::try_from(last).ok()) {
                Some(last) if last > 0 => Some(last),
                _ => {
                    let message = "must be a whole number from 1 on".to_owned();
                    return Err(Box::new(violations(&[("last".to_owned(), message)])));
                }
            },
        };
        let tenant = caller.tenant.as_deref().map(str::to_owned);
        changed(self.try_policy(spec_of(policy), last, tenant).await?)
    }

    pub(super) async fn put_policy(&self, id: String, body: Value, caller: &Caller) -> Answered {
        let operator = operator_of(caller)?;
        for_all_tenants(caller)?;
        let is_other = |named: &Value| named.as_str() != Some(&id);
        if body.get("id").is_some_and(is_other) {
            let message = "is not the one in the path: leave it out, or write both alike".to_owned();
            return Err(Box::new(violations(&[("id".to_owned(), message)])));
        }
        let spec = spec_of(&body);
        if spec.as_object().is_none_or(serde_json::Map::is_empty) {
            return Err(Box::new(violations(&[("spec".to_owned(), "is required".to_owned())])));
        }
        changed(self.change_policy(operator, id, Some(spec.clone())).await?)
    }

    pub(super) async fn drop_policy(&self, id: String, caller: &Caller) -> Answered {
        let operator = operator_of(caller)?;
        for_all_tenants(caller)?;
        changed(self.change_policy(operator, id, None).await?)
    }

    pub(super) fn list_switches(&self, caller: &Caller) -> Answered {
        for_all_tenants(caller)?;
        Ok(json_reply(200, &json!({ "kill_switches": self.kill_switches() })))
    }

    pub(super) async fn put_switch(&self, id: String, body: &Value, caller: &Caller) -> Answered {
        let operator = operator_of(caller)?;
        for_all_tenants(caller)?;
        changed(self.throw_switch(operator, id, body).await?)
    }

    pub(super) async fn drop_switch(&self, id: String, caller: &Caller) -> Answered {
        let operator = operator_of(caller)?;
        for_all_tenants(caller)?;
        changed(self.release_switch(operator, id).await?)
    }
}

/// A policy is sent whole, or with its spec apart as it is listed.
fn spec_of(policy: &Value) -> &Value {
    policy.get("spec").unwrap_or(policy)
}

fn changed(change: Change) -> Answered {
    match change {
        Change::Done(done) => Ok(json_reply(200, &done)),
        Change::Wrong(problems) => Err(Box::new(violations(&problems))),
        Change::Unknown => Err(Box::new(error(404, "not_found", "no override of that id is kept"))),
        Change::InFile => {
            let message = "it stands in the config file: take it out there, and it ends as the file is saved";
            Err(Box::new(error(409, "in_file", message)))
        }
        Change::Ungoverned => {
            Err(Box::new(error(503, "unavailable", "no gateway with policies runs beside this API")))
        }
    }
}

/// Policies name every tenant.
fn for_all_tenants(caller: &Caller) -> Result<(), Box<hyper::Response<super::Reply>>> {
    match caller.tenant {
        None => Ok(()),
        Some(_) => Err(Box::new(error(403, "forbidden", "policies are for operators of all tenants"))),
    }
}
